import Synchronization
import SystemIO
import Testing

@testable import Store

@Suite("A published rendition is found, by its source and by its id") struct PublishTests {
    let directory: TemporaryDirectory
    let url = "https://example.com/a.gif"

    init() throws {
        directory = try TemporaryDirectory()
    }

    @Test func aPublishedRenditionIsFoundByAliasAndById() async throws {
        let bytes = noise(100_000, seed: 1)
        do {
            let cache = try Cache.open(directory)
            defer { cache.close() }
            #expect(await cache.alias(.test(url)) == nil)
            let outcome = try await cache.put(bytes, url: url, facts: [1, 2, 0, 10])
            #expect(outcome.isStored)
            let found = try #require(await cache.alias(.test(url)))
            #expect(try found.descriptor.readAll() == bytes)
            #expect(found.length == 100_000)
            #expect(found.content == ContentDigest(digest: SourceDigest(of: bytes).digest))
            #expect(found.facts == [1, 2, 0, 10])
            #expect(found.alias?.sourceURL == url)
            #expect(found.alias?.validators.etag == "\"\(url)\"")
            let byID = try #require(await cache.object(.test(url)))
            #expect(try byID.descriptor.readAll() == bytes)
            #expect(byID.alias == nil)
        }
    }

    /// Between the lookup of a publish and its commit, another publish stores the object, and then the database fails.
    @Test func noFileIsReplacedIfTheDatabaseCannotBeRead() throws {
        let database = Mutex<SQLiteConnection?>(nil)
        let other = Mutex<(@Sendable () -> Void)?>(nil)
        let cache = try Cache(
            configuration: .test(directory), clock: .system,
            threads: CacheThreads(create: CacheThreads.system.create, includeHousekeeping: false),
            onStep: { step in
                guard step == .publishSynced, let publish = other.withLock({ $0.take() }) else { return }
                publish()
                database.withLock { try? $0?.execute("ALTER TABLE objects RENAME TO others") }
            })
        defer { cache.close() }
        database.withLock { $0 = try? SQLiteConnection(path: directory.path + "/ledger.sqlite") }
        @Sendable func publish(_ bytes: [UInt8]) throws -> PublishOutcome {
            let job = PublishJob(
                staged: try cache.staged(bytes), id: .test(url), fileExtension: "mp4", facts: [],
                alias: .test(url, fetchedAt: 0), epoch: cache.epoch)
            return try cache.publisher.process(job)
        }
        other.withLock { $0 = { _ = try? publish([1, 2, 3]) } }
        let outcome = try publish([4, 5])
        #expect(outcome.unstoredReason == .failed(SystemError("ledger", code: 5)))
        #expect(try directory.contents("objects/" + #require(directory.files().first)) == [1, 2, 3])
    }

    @Test func aPublishedRenditionIsInMemoryAtOnce() async throws {
        let cache = try Cache.open(directory)
        defer { cache.close() }
        try await cache.put([1, 2, 3], url: url)
        #expect(try cache.hotAlias(.test(url))?.descriptor.readAll() == [1, 2, 3])
        #expect(try cache.hotObject(.test(url))?.descriptor.readAll() == [1, 2, 3])
        #expect(cache.statistics().hotHits == 2)
    }

    @Test func aFileHoldsExactlyTheRendition() async throws {
        do {
            let cache = try Cache.open(directory)
            defer { cache.close() }
            try await cache.put([7, 8, 9], url: url)
        }
        let hex = ObjectID.test(url).description
        #expect(directory.files() == ["\(hex.prefix(2))/\(hex.dropFirst(2)).mp4"])
        #expect(try directory.contents("objects/" + directory.files()[0]) == [7, 8, 9])
    }

    @Test func twoSourcesWithOneGIFShareOneFile() async throws {
        let cache = try Cache.open(directory)
        defer { cache.close() }
        let object = ObjectID.test("same")
        #expect(try await cache.put([1, 2, 3], url: "https://a/1.gif", object: object).isStored)
        #expect(try await cache.put([1, 2, 3], url: "https://b/2.gif", object: object).isExisting)
        #expect(directory.files().count == 1)
        #expect(cache.statistics().objects == 1)
        #expect(try await cache.bytes(url: "https://a/1.gif") == [1, 2, 3])
        #expect(try await cache.bytes(url: "https://b/2.gif") == [1, 2, 3])
    }

    @Test func renditionsSurviveARestart() async throws {
        let bytes = noise(5_000, seed: 2)
        do {
            let cache = try Cache.open(directory)
            defer { cache.close() }
            try await cache.put(bytes, url: url, facts: [0, 9, 10, 92])
        }
        do {
            let cache = try Cache.open(directory)
            defer { cache.close() }
            #expect(cache.hotAlias(.test(url)) == nil)
            let found = try #require(await cache.alias(.test(url)))
            #expect(try found.descriptor.readAll() == bytes)
            #expect(found.facts == [0, 9, 10, 92])
            #expect(cache.statistics().objects == 1)
            #expect(cache.statistics().bytes == 5_000)
        }
    }

    @Test func anUploadedRenditionIsFoundByIdOnly() async throws {
        let cache = try Cache.open(directory)
        defer { cache.close() }
        #expect(try await cache.put([5], url: nil).isStored)
        #expect(try await cache.object(.test("upload"))?.descriptor.readAll() == [5])
    }

    @Test func aLinkAddsAnAliasToAStoredObject() async throws {
        let cache = try Cache.open(directory)
        defer { cache.close() }
        try await cache.put([4, 4], url: url)
        let epoch = cache.epoch
        let linked = await cache.link(.test("https://b/"), to: .test(url), epoch: epoch)
        #expect(linked?.isExisting == true)
        #expect(try await cache.bytes(url: "https://b/") == [4, 4])
        #expect(await cache.link(.test("https://c/"), to: .test("nothing"), epoch: epoch) == nil)
    }

    @Test func anEmptyFileAndASecondPublishAreRefused() async throws {
        let cache = try Cache.open(directory)
        defer { cache.close() }
        await #expect(throws: CacheError.self) { try await cache.put([], url: url) }
        let staged = try cache.staged([1])
        let epoch = cache.epoch
        _ = try await cache.publish(staged, as: .test(url), fileExtension: "mp4", alias: nil, epoch: epoch)
        await #expect(throws: CacheError.self) {
            try await cache.publish(staged, as: .test(url), fileExtension: "mp4", alias: nil, epoch: epoch)
        }
        await #expect(throws: CacheError.self) {
            try await cache.publish(try cache.staged([1]), as: .test(url), fileExtension: "../x", alias: nil, epoch: epoch)
        }
    }

    @Test func aRenditionThatMustNotBeStoredCanBeServed() async throws {
        let cache = try Cache.open(directory)
        defer { cache.close() }
        let outcome = try await cache.publish(
            try cache.staged([1, 2]), as: .test(url), fileExtension: "mp4", facts: [], alias: .test(url),
            epoch: cache.epoch,
            storing: false)
        #expect(outcome.unstoredReason == .unwanted)
        #expect(try outcome.rendition.descriptor.readAll() == [1, 2])
        #expect(await cache.alias(.test(url)) == nil)
        #expect(directory.files().isEmpty)
        #expect(cache.statistics().isStoring)
    }

    @Test func anUnpublishedFileLeavesNothing() async throws {
        let cache = try Cache.open(directory)
        defer { cache.close() }
        _ = try cache.staged([1, 2, 3])
        #expect(directory.files("staging").isEmpty)
        #expect(directory.files().isEmpty)
    }
}
