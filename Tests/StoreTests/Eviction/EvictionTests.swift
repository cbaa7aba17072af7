import Glibc
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Store

@Suite("Eviction keeps the cache within its limit and the renditions in use") struct EvictionTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func configuration(maxBytes: Int64) -> CacheConfiguration {
        var configuration = CacheConfiguration.test(directory)
        configuration.maxBytes = maxBytes
        return configuration
    }

    private func open(maxBytes: Int64) throws -> Cache {
        try Cache(configuration: configuration(maxBytes: maxBytes))
    }

    private var bytesOnDisk: Int64 {
        directory.files().filter { $0.hasSuffix(".mp4") }.reduce(0) { sum, name in
            var status = stat()
            return stat(directory.path + "/objects/" + name, &status) == 0 ? sum + Int64(status.st_size) : sum
        }
    }

    @Test func theLimitHoldsDuringAStreamOfPublishesWhileOldRenditionsAreRead() async throws {
        let limit: Int64 = 4 << 20
        let cache = try open(maxBytes: limit)
        defer { cache.close() }
        var held: [(rendition: CachedRendition, seed: UInt64)] = []
        for number in UInt64(0)..<200 {
            let rendition = try await cache.put(noise(100_000, seed: number), url: "https://a/\(number)").rendition
            if number % 20 == 0 { held.append((rendition, number)) }
            #expect(cache.statistics().bytes <= limit * 102 / 100)
            if number % 10 == 0 { #expect(bytesOnDisk <= limit * 102 / 100) }
        }
        for (rendition, seed) in held {
            #expect(try rendition.descriptor.readAll() == noise(100_000, seed: seed))
        }
        try await waitUntil("eviction") { cache.statistics().bytes <= limit * 95 / 100 }
        let statistics = cache.statistics()
        #expect(statistics.evictions > 150)
        #expect(statistics.evictedBytes == statistics.evictions * 100_000)
        #expect(statistics.bytes == bytesOnDisk)
        #expect(statistics.objects == 200 - statistics.evictions)
    }

    @Test func aPublishBeginsTheEvictionThatItMakesNecessary() async throws {
        var configuration = configuration(maxBytes: 1 << 20)
        configuration.housekeepingInterval = .seconds(3600)
        let cache = try Cache(configuration: configuration)
        defer { cache.close() }
        // Ten take more than 95 % of the limit, but not all of it.
        for number in UInt64(0)..<10 { try await cache.put(noise(100_000, seed: number), url: "https://a/\(number)") }
        try await waitUntil("eviction") { cache.statistics().evictions > 0 }
    }

    @Test func usedRenditionsStayAndUnusedOnesAreEvicted() async throws {
        let cache = try open(maxBytes: 1 << 20)
        defer { cache.close() }
        try await cache.put(noise(100_000, seed: 1), url: "https://used/")
        try await cache.put(noise(100_000, seed: 2), url: "https://unused/")
        for number in UInt64(10)..<40 {
            #expect(cache.hotAlias(.test("https://used/")) != nil)
            try await cache.put(noise(100_000, seed: number), url: "https://a/\(number)")
        }
        #expect(try await cache.bytes(url: "https://used/") == noise(100_000, seed: 1))
        #expect(try await cache.bytes(url: "https://unused/") == nil)
    }

    @Test func anEvictedObjectLosesItsAliases() async throws {
        let cache = try open(maxBytes: 1 << 20)
        defer { cache.close() }
        try await cache.put(noise(300_000, seed: 1), url: "https://a/", object: .test("same"))
        try await cache.put(noise(300_000, seed: 1), url: "https://b/", object: .test("same"))
        for number in UInt64(10)..<20 { try await cache.put(noise(300_000, seed: number), url: "https://c/\(number)") }
        #expect(cache.hotAlias(.test("https://a/")) == nil)
        #expect(cache.hotObject(.test("same")) == nil)
        #expect(await cache.alias(.test("https://a/")) == nil)
        #expect(await cache.alias(.test("https://b/")) == nil)
    }

    @Test func theLimitHoldsAcrossRestarts() async throws {
        for round in UInt64(0)..<4 {
            let cache = try open(maxBytes: 1 << 20)
            for number in 0..<10 {
                try await cache.put(noise(100_000, seed: round * 10 + UInt64(number)), url: "https://a/\(round)/\(number)")
            }
            #expect(cache.statistics().bytes <= 1 << 20)
            cache.close()
            #expect(bytesOnDisk == cache.statistics().bytes)
        }
    }

    @Test func aSmallCacheEvictsAsMuchAsNeededAndCountsItOnce() async throws {
        let cache = try open(maxBytes: 1 << 20)
        defer { cache.close() }
        for number in UInt64(0)..<3 {
            let rendition = try await cache.put(noise(300_000, seed: number), url: "https://a/\(number)").rendition
            #expect(cache.hotAlias(.test("https://a/\(number)")) === rendition)
        }
        // All three are used, so the hand passes each once, and then evicts all of them.
        #expect(try await cache.put(noise(900_000, seed: 9), url: "https://big/").isStored)
        let statistics = cache.statistics()
        #expect(statistics.evictions == 3)
        #expect(statistics.evictedBytes == 900_000)
        #expect(statistics.bytes == 900_000)
        #expect(bytesOnDisk == 900_000)
    }

    @Test func aPublishIntoACacheThatHasBecomeSmallerEvictsNoMoreThanItAdds() async throws {
        let large = try Cache.openWithoutHousekeeping(configuration(maxBytes: 64 << 20))
        for number in UInt64(0)..<40 { try await large.put(noise(100_000, seed: number), url: "https://a/\(number)") }
        large.close()
        let small = try Cache.openWithoutHousekeeping(configuration(maxBytes: 1 << 20))
        defer { small.close() }
        for number in UInt64(1)...3 {
            #expect(try await small.put(noise(100_000, seed: 100 + number), url: "https://b/\(number)").isStored)
            #expect(small.statistics().bytes <= 4_000_000)
            #expect(small.statistics().evictions <= 2 * Int64(number))
        }
        small.housekeeper.runRound()
        #expect(small.statistics().bytes <= 1 << 20)
    }

    @Test func anEmptyCacheEvictsNothing() throws {
        let cache = try Cache.openWithoutHousekeeping(.test(directory))
        defer { cache.close() }
        #expect(cache.context.changes.withLock { $0.evict(atLeast: .max, visited: VisitedObjects()) }.objects.isEmpty)
    }

    @Test func evictionEndsIfTheDatabaseCannotBeChanged() async throws {
        let cache = try Cache.openWithoutHousekeeping(configuration(maxBytes: 1 << 20))
        for number in UInt64(0)..<3 { try await cache.put(noise(300_000, seed: number), url: "https://a/\(number)") }
        cache.forgetHot()
        // A trigger refuses what a full disk would refuse.
        let database = try SQLiteConnection(path: directory.path + "/ledger.sqlite")
        try database.execute("CREATE TRIGGER refuse BEFORE DELETE ON objects BEGIN SELECT RAISE(ABORT, 'refused'); END")
        let result = cache.evictor.evictBatch(atLeast: 1)
        #expect(result.bytes == 300_000 && !result.continues)
        #expect(bytesOnDisk == 600_000)
        try database.execute("DROP TRIGGER refuse")
        cache.housekeeper.runRound()
        #expect(cache.statistics().objects == 2 && cache.statistics().bytes == 600_000)
        #expect(try await cache.put([1], url: "https://b/").isStored)
        cache.close()
    }

    // MARK: Aliases

    @Test func aliasesAreBoundedAndTheObjectsOfThoseInUseStay() async throws {
        let cache = try Cache.openWithoutHousekeeping(configuration(maxBytes: 1 << 20))
        defer { cache.close() }
        let name = String(repeating: "x", count: 200)
        try await cache.put([1], url: "https://a/", object: .test("same"))
        for number in 0..<1_000 {
            let url = "https://a/\(name)?\(number)"
            _ = await cache.link(.test(url), to: .test("same"), epoch: cache.epoch)
        }
        #expect(cache.statistics().aliases == 1_001)
        #expect(cache.statistics().aliasBytes > 600_000)
        #expect(cache.statistics().diskBytes > 600_000)
        cache.forgetHot()
        #expect(await cache.alias(.test("https://a/\(name)?7")) != nil)
        cache.housekeeper.runRound()
        let statistics = cache.statistics()
        #expect(statistics.aliasBytes <= 1 << 17)
        #expect(statistics.aliases < 300)
        #expect(statistics.objects == 1)
        cache.forgetHot()
        // The oldest have gone, except for the one in memory.
        #expect(await cache.alias(.test("https://a/\(name)?0")) == nil)
        #expect(await cache.alias(.test("https://a/\(name)?7")) != nil)
        #expect(await cache.alias(.test("https://a/\(name)?999")) != nil)
    }

    @Test func anObjectGoesWithItsLastAliasUnlessItWasUploaded() async throws {
        let cache = try Cache.openWithoutHousekeeping(configuration(maxBytes: 1 << 20))
        defer { cache.close() }
        try await cache.put([1], url: "https://a/")
        try await cache.put([2], url: "https://b/", object: .test("upload"))
        try await cache.put([2], url: nil)
        cache.forgetHot()
        #expect(cache.context.changes.withLock({ $0.evictAliases { _ in false } })?.map(\.record.id) == [.test("https://a/")])
        #expect(directory.files().filter { $0.hasSuffix(".mp4") }.count == 1)
        #expect(await cache.object(.test("upload")) != nil)
        #expect(cache.context.changes.withLock { $0.evictAliases { _ in false } } == nil)
        #expect(cache.statistics().aliases == 0 && cache.statistics().aliasBytes == 0)
    }

    // MARK: Disks that refuse files

    @Test(.enabled(if: SmallDisk.isPossible, "needs the right to mount"))
    func inodesAreFreedAsBytesAre() async throws {
        let disk = try #require(SmallDisk(on: directory.path, bytes: 64 << 20, inodes: 400))
        let cache = try Cache(configuration: configuration(maxBytes: 1 << 30))
        defer { cache.close() }
        for number in 0..<600 {
            try await cache.put([UInt8(number % 256)], url: "https://a/\(number)")
            if number % 10 == 0 { try await waitUntil("inodes") { disk.freeInodes >= 10 } }
        }
        #expect(cache.statistics().evictions > 100)
        try await waitUntil("storing") { try await cache.put([1], url: "https://b/").isStored }
        _ = consume disk
    }

    @Test func aDiskThatRefusesFilesInSpiteOfItsSpaceGetsSome() async throws {
        let cache = try Cache.openWithoutHousekeeping(configuration(maxBytes: 1 << 30))
        defer { cache.close() }
        for number in 0..<100 { try await cache.put([UInt8(number)], url: "https://a/\(number)") }
        // As a worker's write ends at a quota.
        _ = try await cache.publish(
            try cache.stageInMemory(because: .diskFull, containing: [1]), as: .test("b"), fileExtension: "mp4",
            alias: .test("https://b/"), epoch: cache.epoch)
        cache.housekeeper.runRound()
        let evictions = cache.statistics().evictions
        #expect((1...50).contains(evictions))
        cache.housekeeper.runRound()
        #expect(cache.statistics().evictions == evictions)
    }

    @Test func aSmallerLimitEvictsAndALargerOneTakesMore() async throws {
        let cache = try Cache.openWithoutHousekeeping(configuration(maxBytes: 8 << 20))
        defer { cache.close() }
        for number in UInt64(0)..<40 { try await cache.put(noise(100_000, seed: number), url: "https://a/\(number)") }
        cache.setLimits(maxBytes: 2 << 20, minFreeBytes: 0)
        cache.housekeeper.runRound()
        #expect(cache.statistics().diskBytes <= 2 << 20 && cache.statistics().limitBytes == 2 << 20)
        cache.setLimits(maxBytes: 8 << 20, minFreeBytes: 0)
        for number in UInt64(100)..<140 { try await cache.put(noise(100_000, seed: number), url: "https://a/\(number)") }
        cache.housekeeper.runRound()
        #expect(cache.statistics().diskBytes > 4 << 20)
        // More than any disk has.
        cache.setLimits(maxBytes: 8 << 20, minFreeBytes: 1 << 60)
        #expect(cache.space()?.refusal == .lowSpace)
        let refused = try await cache.put(noise(100, seed: 200), url: "https://a/200")
        #expect(refused.unstoredReason == .lowSpace && cache.statistics().refusal == .lowSpace)
    }

    @Test func aRenditionLargerThanTheCacheIsServedUnstored() async throws {
        let cache = try open(maxBytes: 1 << 20)
        defer { cache.close() }
        try await cache.put([1], url: "https://small/")
        let outcome = try await cache.put(noise(1_100_000, seed: 1), url: "https://big/")
        #expect(outcome.unstoredReason == .tooLarge)
        #expect(try outcome.rendition.descriptor.readAll() == noise(1_100_000, seed: 1))
        #expect(try await cache.bytes(url: "https://small/") == [1])
        #expect(cache.statistics().isStoring)
    }

    @Test(.enabled(if: WriteProtection.isPossible, "neither chmod nor chattr keeps this process from writing"))
    func anObjectWhoseFileCannotBeRemovedStaysAndEndsTheRound() async throws {
        let cache = try Cache.openWithoutHousekeeping(configuration(maxBytes: 1 << 20))
        defer { cache.close() }
        // Two objects in different directories.
        let first = "https://a/0"
        let second = try #require((1...9).map { "https://a/\($0)" }.first { folder($0) != folder(first) })
        for url in [first, second] { try await cache.put(noise(300_000, seed: 1), url: url) }
        let protection = try #require(WriteProtection(of: folder(second)))
        let result = cache.evictor.evictBatch(atLeast: .max)
        #expect(result.bytes == 300_000)
        #expect(!result.continues)
        let statistics = cache.statistics()
        #expect(statistics.evictions == 1)
        #expect(statistics.evictedBytes == 300_000)
        #expect(statistics.objects == 1)
        #expect(statistics.bytes == 300_000)
        cache.forgetHot()
        #expect(try await cache.bytes(url: second) == noise(300_000, seed: 1))
        protection.end()
        // The hand has passed it, begins another lap, passes it once more, because it was used, and begins a third one.
        let bytes = (0..<4).map { _ in cache.evictor.evictBatch(atLeast: .max).bytes }
        #expect(bytes == [0, 0, 0, 300_000])
        #expect(bytesOnDisk == 0)
    }

    @Test func anObjectWhoseFileIsMissingLosesItsRowAndCountsAsNoEviction() async throws {
        let cache = try Cache.openWithoutHousekeeping(configuration(maxBytes: 1 << 20))
        defer { cache.close() }
        for number in UInt64(0)..<3 { try await cache.put(noise(300_000, seed: number), url: "https://a/\(number)") }
        let missing = ObjectID.test("https://a/0").description
        try directory.remove("objects/\(missing.prefix(2))/\(missing.dropFirst(2)).mp4")
        #expect(cache.evictor.evictBatch(atLeast: 1) == (0, true))
        var statistics = cache.statistics()
        #expect(statistics.evictions == 0 && statistics.evictedBytes == 0)
        #expect(statistics.objects == 2 && statistics.bytes == 600_000)
        #expect(await cache.alias(.test("https://a/0")) == nil)

        let second = ObjectID.test("https://a/1").description
        try directory.remove("objects/\(second.prefix(2))/\(second.dropFirst(2)).mp4")
        let result = cache.evictor.evictBatch(atLeast: .max)
        #expect(result.bytes == 300_000 && result.continues)
        statistics = cache.statistics()
        #expect(statistics.evictions == 1 && statistics.evictedBytes == 300_000)
        #expect(statistics.objects == 0 && statistics.bytes == 0)
    }

    /// The path of the directory with the object that is named by a URL.
    private func folder(_ url: String) -> String {
        "\(directory.path)/objects/\(ObjectID.test(url).description.prefix(2))"
    }
}
