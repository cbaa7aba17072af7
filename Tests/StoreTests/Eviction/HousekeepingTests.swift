import Glibc
import TestSupport
import Testing

@testable import Store

@Suite("Housekeeping reads at a bounded rate, and frees disk space")
struct HousekeepingTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory(inMemory: true)
    }

    // MARK: Scrubbing

    /// Whether `progress` allows reading `seconds` after the start, at a rate in bytes per second.
    private func mayRead(_ progress: inout ScrubProgress, _ rate: Int64, after seconds: Double) -> Bool {
        progress.credit(rate, now: UInt64(seconds * 1_000_000_000))
    }

    @Test func scrubbingIsCreditedForTheTimeThatPasses() {
        var progress = ScrubProgress()
        // The first call only starts the clock.
        let first = mayRead(&progress, 1_000_000, after: 5)
        let second = mayRead(&progress, 1_000_000, after: 5.5)
        #expect(!first && second)
        #expect(progress.credit == 500_000)
        progress.spend(800_000, through: 7)
        #expect(progress.credit == -300_000 && progress.cursor == 7)
        // The next file is read after the larger one is paid for.
        let third = mayRead(&progress, 1_000_000, after: 5.75)
        let fourth = mayRead(&progress, 1_000_000, after: 6.25)
        #expect(!third && fourth)
        #expect(progress.credit == 450_000)
    }

    @Test func creditIsLimitedToOneSecond() {
        var progress = ScrubProgress()
        _ = mayRead(&progress, 1_000_000, after: 0)
        let later = mayRead(&progress, 1_000_000, after: 3600)
        #expect(later && progress.credit == 1_000_000)
        // A clock that goes back credits nothing.
        progress.spend(1_000_000, through: 1)
        let back = mayRead(&progress, 1_000_000, after: 10)
        #expect(!back && progress.credit == 0)
    }

    @Test func aPassIsFollowedByADayOfRest() {
        var progress = ScrubProgress()
        _ = mayRead(&progress, 10_000, after: 0)
        let first = mayRead(&progress, 10_000, after: 1)
        progress.spend(1, through: 9)
        progress.endPass(now: 1_000_000_000)
        #expect(first && progress.cursor == 0)
        let resting = mayRead(&progress, 10_000, after: 86_400)
        let rested = mayRead(&progress, 10_000, after: 86_401)
        #expect(!resting && rested)
    }

    @Test func filesThatARestoredDatabaseDoesNotKnowAreRemovedAfterAPass() async throws {
        let first = try Cache.open(directory)
        try await first.put([1, 2], url: "https://a/1")
        first.close()
        let id = ObjectID.test("newer than the backup").description
        try directory.create("objects/\(id.prefix(2))/\(id.dropFirst(2)).mp4", [3])
        let time = ManualClock()
        let cache = try Cache.openWithoutHousekeeping(.test(directory), clock: time.cacheClock)
        defer { cache.close() }
        // The first round starts the clock of the scrubber, and the second ends its pass.
        for _ in 0..<3 {
            cache.housekeeper.runRound()
            time.advance(1)
        }
        #expect(cache.statistics().orphans == 1)
        #expect(directory.files().count == 1)
        #expect(try await cache.bytes(url: "https://a/1") == [1, 2])
    }

    // MARK: Free space

    @Test(.enabled(if: SmallDisk.isPossible, "needs the right to mount"))
    func evictionLeavesAMarginAboveTheMinimum() async throws {
        let disk = try #require(SmallDisk(on: directory.path, bytes: 16 << 20))
        var configuration = CacheConfiguration.test(directory)
        configuration.minFreeBytes = 4 << 20
        let cache = try Cache(configuration: configuration)
        defer { cache.close() }
        for number in UInt64(0)..<40 { try await cache.put(noise(100_000, seed: number), url: "https://a/\(number)") }
        // Slightly more than required: the next publishes would reach the minimum.
        disk.fill(leaving: 4 << 20 + 100 << 10)
        try await waitUntil("eviction") { disk.free >= 4 << 20 + 400 << 10 }
        #expect((1...10).contains(cache.statistics().evictions))
        _ = consume disk
    }

    @Test(.enabled(if: SmallDisk.isPossible, "needs the right to mount"), arguments: [0, 2 << 20] as [Int64])
    func evictionMakesRoomForALargeFileThatWasRefused(_ minimum: Int64) async throws {
        let disk = try #require(SmallDisk(on: directory.path, bytes: 16 << 20))
        var configuration = CacheConfiguration.test(directory)
        configuration.minFreeBytes = minimum
        let cache = try Cache.openWithoutHousekeeping(configuration)
        defer { cache.close() }
        cache.housekeeper.runRound()
        for number in UInt64(0)..<40 { try await cache.put(noise(100_000, seed: number), url: "https://a/\(number)") }
        // More than the minimum and its margin, and less than the file needs.
        disk.fill(leaving: Int(minimum) + 500 << 10)
        #expect(try cache.publisher.createFile(expecting: 1 << 20).isInMemory)
        cache.housekeeper.runRound()
        #expect(try !cache.publisher.createFile(expecting: 1 << 20).isInMemory)
        let evictions = cache.statistics().evictions
        #expect((10...30).contains(evictions))
        // All renditions together are smaller.
        #expect(try cache.publisher.createFile(expecting: 12 << 20).isInMemory)
        cache.housekeeper.runRound()
        #expect(cache.statistics().evictions == evictions)
        _ = consume disk
    }

    @Test(.enabled(if: SmallDisk.isPossible, "needs the right to mount"))
    func evictionWaitsForTheSpaceOfFilesThatAreBeingRead() async throws {
        let disk = try #require(SmallDisk(on: directory.path, bytes: 16 << 20))
        let time = ManualClock()
        var configuration = CacheConfiguration.test(directory)
        configuration.minFreeBytes = 4 << 20
        let cache = try Cache.openWithoutHousekeeping(configuration, clock: time.cacheClock)
        defer { cache.close() }
        var readers: [CachedRendition] = []
        for number in UInt64(0)..<40 {
            readers.append(try await cache.put(noise(100_000, seed: number), url: "https://a/\(number)").rendition)
        }
        disk.fill(leaving: 4 << 20 + 100 << 10)
        cache.housekeeper.runRound()
        let evictions = cache.statistics().evictions
        #expect((1...10).contains(evictions))
        for _ in 0..<5 { cache.housekeeper.runRound() }
        #expect(cache.statistics().evictions == evictions)
        // Space that stays in use is replaced.
        time.advance(31)
        cache.housekeeper.runRound()
        #expect(cache.statistics().evictions > evictions)
        #expect(readers.count == 40)
        _ = consume disk
    }

    @Test(.enabled(if: SmallDisk.isPossible, "needs the right to mount"))
    func objectsWithoutFilesFreeNoSpace() async throws {
        let disk = try #require(SmallDisk(on: directory.path, bytes: 16 << 20))
        var configuration = CacheConfiguration.test(directory)
        configuration.minFreeBytes = 4 << 20
        let cache = try Cache.openWithoutHousekeeping(configuration)
        defer { cache.close() }
        cache.housekeeper.runRound()
        for number in UInt64(0)..<40 { try await cache.put(noise(100_000, seed: number), url: "https://a/\(number)") }
        for number in 0..<10 {
            let id = ObjectID.test("https://a/\(number)").description
            try directory.remove("objects/\(id.prefix(2))/\(id.dropFirst(2)).mp4")
        }
        cache.forgetHot()
        disk.fill(leaving: 4 << 20 + 100 << 10)
        cache.housekeeper.runRound()
        #expect(disk.free >= 4 << 20 + 300 << 10)
        let statistics = cache.statistics()
        #expect((1...10).contains(statistics.evictions))
        #expect(statistics.objects == 30 - statistics.evictions)
        _ = consume disk
    }

    @Test func evictedBytesCountAsFreeUntilTheDiskReportsThem() {
        var space = EvictedSpace()
        var expected = [space.measure(free: 1000, now: 0)]
        space.add(500, now: 0)
        // The second measurement follows a write of 100 bytes.
        for free: Int64 in [1000, 900, 1200, 1500, 400] { expected.append(space.measure(free: free, now: 1)) }
        #expect(expected == [0, 500, 500, 200, 0, 0])
    }

    @Test func evictedBytesCountAsFreeForThirtySeconds() {
        let second: UInt64 = 1_000_000_000
        var space = EvictedSpace()
        space.add(500, now: second)
        space.add(100, now: 20 * second)
        var expected = [space.measure(free: 0, now: 31 * second - 1), space.measure(free: 0, now: 31 * second)]
        space.add(50, now: 32 * second)
        expected += [space.measure(free: 0, now: 62 * second - 1), space.measure(free: 0, now: 62 * second)]
        #expect(expected == [600, 0, 50, 0])
    }
}
