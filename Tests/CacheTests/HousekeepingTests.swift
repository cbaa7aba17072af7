import Glibc
import TestSupport
import Testing

@testable import Cache

@Suite("Housekeeping reads at a bounded rate, frees disk space, and rewrites the journal beside changes")
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
        // Files and rows are compared before files are lost.
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

    // MARK: Revalidation

    @Test func markCoversOlderAliasesAndSurvivesARestart() throws {
        let folder = try CacheDirectory(path: directory.path)
        let mark = RevalidationMark(folder, before: .max)
        #expect(!mark.covers(aliasSequence: 0))
        try mark.set(100, in: folder)
        #expect(mark.covers(aliasSequence: 99) && !mark.covers(aliasSequence: 100))
        // It never moves back.
        try mark.set(50, in: folder)
        #expect(mark.covers(aliasSequence: 99))
        let reopened = RevalidationMark(folder, before: .max)
        #expect(reopened.covers(aliasSequence: 49))
        try mark.set(200, in: folder)
        reopened.reload(from: folder, before: .max)
        #expect(reopened.covers(aliasSequence: 199) && !reopened.covers(aliasSequence: 200))
    }

    @Test func markThatCouldNotBeWrittenIsWrittenByALaterRound() async throws {
        let time = ManualClock()
        let cache = try Cache.openWithoutHousekeeping(.test(directory), clock: time.cacheClock)
        try await cache.put([1], url: "https://a/")
        // Occupies the name under which the mark is written.
        #expect(mkdir("\(directory.path)/revalidate.new", 0o755) == 0)
        await cache.revalidateAll()
        cache.housekeeper.runRound()
        try directory.remove("revalidate.new")
        cache.housekeeper.runRound()
        cache.close()
        let reopened = try Cache.open(directory, clock: time.cacheClock)
        defer { reopened.close() }
        let rendition = try #require(await reopened.alias(.test("https://a/")))
        #expect(reopened.freshness(of: rendition) == .expired)
    }

    @Test(arguments: ["", "x\n", "12x\n", "99999999999999999999\n"])
    func damagedMarkCoversNothing(text: String) throws {
        let folder = try CacheDirectory(path: directory.path)
        try RevalidationMark(folder, before: .max).set(7, in: folder)
        try directory.write(Array(text.utf8), to: "revalidate")
        #expect(!RevalidationMark(folder, before: .max).covers(aliasSequence: 0))
    }

    @Test func markOfALostJournalCoversNoLaterAlias() async throws {
        let time = ManualClock()
        let first = try Cache.open(directory, clock: time.cacheClock)
        for number in 0..<5 { try await first.put([1], url: "https://a/\(number)") }
        await first.revalidateAll()
        first.close()
        try directory.remove("journal")
        for isRestart in [false, true] {
            let cache = try Cache.open(directory, clock: time.cacheClock)
            if !isRestart { try await cache.put([2], url: "https://b/") }
            let rendition = try #require(await cache.alias(.test("https://b/")))
            #expect(cache.freshness(of: rendition) == .fresh(remaining: 86_400))
            cache.close()
        }
    }

    // MARK: The journal

    @Test func changesDuringARewriteOfTheJournalAreKept() async throws {
        let cache = try Cache.open(directory)
        try await cache.put([1], url: "https://a/")
        try await cache.put([2], url: "https://b/")
        for number in 0..<2000 {
            _ = await cache.renew(
                .test("https://a/"), validators: Validators(), fetchedAt: Int64(number), freshFor: 0,
                epoch: cache.epoch(for: "https://a/"))
        }
        try await waitUntil("the comparison of files and rows") { cache.store.reconciliation == nil }
        let before = try directory.contents("journal").count
        // The condition is asked between two parts of the copy, while other changes go on.
        let store = cache.store
        var hasChanged = false
        store.compactJournal(floor: 1000) {
            if !hasChanged {
                hasChanged = true
                _ = store.applyPurge(.url("https://b/")) {}
            }
            return false
        }
        #expect(hasChanged)
        #expect(try directory.contents("journal").count < before)
        cache.close()
        try directory.remove("index.sqlite")
        let rebuilt = try Store(path: directory.path)
        rebuilt.catchUp()
        #expect(rebuilt.aliasRow(.test("https://a/"))?.record.fetchedAt == 1999)
        #expect(rebuilt.aliasRow(.test("https://b/")) == nil)
        rebuilt.close()
    }

    @Test func rewriteThatIsInterruptedLeavesTheJournalAsItWas() async throws {
        let cache = try Cache.open(directory)
        for number in 0..<20 { try await cache.put([UInt8(number)], url: "https://a/\(number)") }
        try await waitUntil("the comparison of files and rows") { cache.store.reconciliation == nil }
        let before = try directory.contents("journal")
        cache.store.compactJournal(floor: 0) { true }
        #expect(try directory.contents("journal") == before)
        #expect(!directory.files("").contains(JournalCompaction.fileName))
        cache.close()
    }
}
