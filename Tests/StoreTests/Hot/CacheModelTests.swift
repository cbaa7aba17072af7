import SystemIO
import TestSupport
import Testing

@testable import Store

/// A model of ``Cache`` in dictionaries, for comparison after the same operations.
private struct CacheModel {
    struct Object {
        let bytes: [UInt8]
        var isUploaded: Bool
        /// The sources whose aliases led here and now lead elsewhere.
        var formerURLs: Set<String> = []
    }

    private(set) var objects: [ObjectID: Object] = [:]
    private(set) var aliases: [String: ObjectID] = [:]

    func bytes(url: String) -> [UInt8]? { aliases[url].flatMap { objects[$0]?.bytes } }

    mutating func publish(_ bytes: [UInt8], _ id: ObjectID, url: String?) {
        if objects[id] == nil { objects[id] = Object(bytes: bytes, isUploaded: false) }
        if let url { link(url, to: id) } else { objects[id]?.isUploaded = true }
    }

    mutating func link(_ url: String, to id: ObjectID) {
        if let former = aliases[url], former != id { objects[former]?.formerURLs.insert(url) }
        aliases[url] = id
    }

    mutating func upload(_ id: ObjectID) { objects[id]?.isUploaded = true }

    mutating func purge(_ scope: PurgeScope) -> PurgeCounts {
        let covered = aliases.filter { scope.covers($0.key) || scope == .object($0.value) }
        let kept = Set(aliases.filter { covered[$0.key] == nil }.values)
        let aliased = Set(aliases.values)
        let removed = objects.filter { id, object in
            switch scope {
            case .all: true
            case .object(let wanted): id == wanted
            case .url, .prefix, .host:
                !object.isUploaded && !kept.contains(id)
                    && (covered.values.contains(id) || object.formerURLs.contains { scope.covers($0) })
            }
        }
        let unaliased =
            switch scope {
            case .all: removed.keys.count { !aliased.contains($0) }
            case .object: covered.isEmpty ? removed.count : 0
            case .url, .prefix, .host: 0
            }
        for url in covered.keys { aliases[url] = nil }
        for id in removed.keys { objects[id] = nil }
        objects = objects.mapValues { object in
            var object = object
            object.formerURLs = object.formerURLs.filter { !scope.covers($0) }
            return object
        }
        return PurgeCounts(
            purged: Int64(covered.count + unaliased), bytes: removed.values.reduce(0) { $0 + Int64($1.bytes.count) })
    }
}

@Suite("Random operations on a cache have the results that a model predicts") struct CacheModelTests {
    private static let urls = ["https://a/1", "https://a/2", "https://a/22", "https://b/", "https://b/ä"]
    private static let names = ["v", "w", "x", "y", "z"]

    private func expect(_ cache: Cache, equals model: CacheModel, _ note: Comment) async throws {
        for url in Self.urls { #expect(try await cache.bytes(url: url) == model.bytes(url: url), note) }
        for name in Self.names {
            let id = ObjectID.test(name)
            #expect(try await cache.object(id)?.descriptor.readAll() == model.objects[id]?.bytes, note)
        }
        let statistics = cache.statistics()
        #expect(statistics.objects == Int64(model.objects.count), note)
        #expect(statistics.aliases == Int64(model.aliases.count), note)
        #expect(statistics.bytes == model.objects.values.reduce(0) { $0 + Int64($1.bytes.count) }, note)
    }

    @Test(arguments: UInt64(0)..<12) func operationsAndRestarts(seed: UInt64) async throws {
        var random = RandomRecords(seed: seed)
        let directory = try TemporaryDirectory(inMemory: true)
        var cache = try Cache.open(directory)
        var model = CacheModel()
        for step in 0..<50 {
            let url = random.element(of: Self.urls)
            let name = random.element(of: Self.names)
            let id = ObjectID.test(name)
            let note: Comment = "seed \(seed), step \(step)"
            switch random.number(0...15) {
            case 0..<6:
                let bytes = noise(100 + Int(name.utf8.first ?? 0), seed: 1)
                let publishedURL = random.chance(80) ? url : nil
                let outcome = try await cache.put(bytes, url: publishedURL, object: id)
                #expect(outcome.isStored == (model.objects[id] == nil), note)
                #expect(outcome.isExisting == (model.objects[id] != nil), note)
                model.publish(bytes, id, url: publishedURL)
            case 6, 7:
                let outcome = await cache.link(.test(url), to: id, epoch: cache.epoch)
                #expect((outcome != nil) == (model.objects[id] != nil), note)
                if model.objects[id] != nil { model.link(url, to: id) }
            case 8:
                #expect((try await cache.uploadedObject(id) != nil) == (model.objects[id] != nil), note)
                model.upload(id)
            case 9:
                let renewed = await cache.renew(
                    .test(url), validators: Validators(), times: OriginTimes(fetchedAt: Int64(step)), epoch: cache.epoch)
                #expect(renewed?.objectID == model.aliases[url], note)
            case 10..<13:
                let scopes: [PurgeScope] = [
                    .url(url), .url(url), .prefix("https://a/2"), .prefix("https://b"), .object(id), .all,
                ]
                let scope = random.element(of: random.chance(90) ? scopes.dropLast() : scopes)
                #expect(try await cache.purge(scope) == model.purge(scope), note)
            case 13:
                cache.forgetHot()
            default:
                cache.close()
                cache = try Cache.open(directory)
            }
            try await expect(cache, equals: model, note)
        }
        cache.close()
    }

    @Test func manyPublishesOfOneObjectStoreOneFile() async throws {
        let directory = try TemporaryDirectory(inMemory: true)
        let cache = try Cache.open(directory)
        defer { cache.close() }
        let bytes = noise(50_000, seed: 1)
        let stored = try await withThrowingTaskGroup(of: PublishOutcome.self) { group in
            for number in 0..<40 {
                group.addTask { try await cache.put(bytes, url: "https://a/\(number)", object: .test("same")) }
            }
            var stored = 0
            for try await outcome in group {
                #expect(outcome.isStored || outcome.isExisting)
                #expect(try outcome.rendition.descriptor.readAll() == bytes)
                stored += outcome.isStored ? 1 : 0
            }
            return stored
        }
        #expect(stored == 1)
        #expect(directory.files().count == 1)
        for number in 0..<40 { #expect(try await cache.bytes(url: "https://a/\(number)") == bytes) }
        #expect(try await cache.purge(.prefix("https://a/")) == PurgeCounts(purged: 40, bytes: 50_000))
        #expect(directory.files().isEmpty)
    }

    @Test func aCacheThatIsClosedDuringWorkAnswersAllOfIt() async throws {
        let directory = try TemporaryDirectory(inMemory: true)
        let cache = try Cache.open(directory)
        try await cache.put([1], url: "https://a/")
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<60 {
                group.addTask {
                    let bytes = noise(1_000, seed: UInt64(number))
                    let outcome = try? await cache.put(bytes, url: "https://b/\(number)")
                    // Staging may fail after the close, but a rendition that is given out is whole.
                    if let outcome { #expect((try? outcome.rendition.descriptor.readAll()) == bytes) }
                    _ = await cache.alias(.test("https://a/"))
                    _ = try? await cache.purge(.url("https://c/"))
                }
            }
            group.addTask { cache.close() }
        }
        #expect(await cache.alias(.test("https://a/")) == nil)
        #expect(cache.hotAlias(.test("https://a/")) == nil)
        #expect(try await cache.put([2], url: "https://a/").unstoredReason == .unavailable)
        let again = try Cache.open(directory)
        defer { again.close() }
        #expect(try await again.bytes(url: "https://a/") == [1])
        #expect(again.statistics().corrupt == 0)
    }
}
