import Glibc
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Store

@Suite("The cache survives disks and directories that fail") struct DirectoryTests {
    let directory: TemporaryDirectory
    let url = "https://example.com/a.gif"

    init() throws {
        directory = try TemporaryDirectory()
    }

    @Test func aSecondServerOnADirectoryIsRefusedWithASentence() async throws {
        let first = try Cache.open(directory)
        let error = #expect(throws: CacheError.self) { try Cache.open(directory) }
        #expect(error?.description.contains("in use by another server (process \(getpid()))") == true)
        #expect(error?.description.contains(directory.path) == true)
        try await first.put([1], url: url)
        first.close()
        let second = try Cache.open(directory)
        defer { second.close() }
        #expect(try await second.bytes(url: url) == [1])
    }

    @Test func aSecondServerIsRefusedEvenIfTheLockFileIsGone() async throws {
        let first = try Cache.open(directory)
        defer { first.close() }
        try directory.remove("lock")
        for _ in 0..<2 {
            let error = #expect(throws: CacheError.self) { try Cache.open(directory) }
            #expect(error?.description.contains("in use by another server") == true)
        }
        #expect(try await first.put([1], url: url).isStored)
        #expect(try await first.bytes(url: url) == [1])
    }

    /// Whatever is at the path now may be another server's. Removing the directory is meant to remove its contents.
    @Test(arguments: ["objects", "staging", "ledger.sqlite", "."])
    func aDirectoryThatIsRemovedEndsStoringUntilARestart(part: String) async throws {
        let events = Mutex<[CacheEvent]>([])
        let cache = try Cache(configuration: .test(directory)) { event in events.withLock { $0.append(event) } }
        try await cache.put([1], url: url)
        let held = try #require(cache.hotAlias(.test(url)))
        if part == "." {
            for name in ["objects", "staging", "lock", "ledger.sqlite"] { try directory.remove(name) }
        } else {
            try directory.remove(part)
        }
        try await waitUntil("the event") { !events.withLock { $0 }.isEmpty }
        #expect(try held.descriptor.readAll() == [1])
        let outcome = try await cache.put([2], url: "https://b/")
        #expect(outcome.unstoredReason == .directoryLost)
        #expect(try outcome.rendition.descriptor.readAll() == [2])
        #expect(!cache.statistics().isStoring)
        #expect(events.withLock { $0 } == [.directoryLost(path: directory.path)])
        cache.close()
        let again = try Cache.open(directory)
        defer { again.close() }
        #expect(try await again.put([3], url: "https://c/").isStored)
        #expect(try await again.bytes(url: url) == (part == "staging" ? [1] : nil))
    }

    /// As by a backup that is restored while the server runs.
    @Test func aDatabaseThatIsReplacedEndsStoringUntilARestart() async throws {
        let cache = try Cache.openWithoutHousekeeping(.test(directory))
        defer { cache.close() }
        cache.housekeeper.runRound()
        #expect(try await cache.put([1], url: url).isStored)
        try directory.create("copy", directory.contents("ledger.sqlite"))
        #expect(rename(directory.path + "/copy", directory.path + "/ledger.sqlite") == 0)
        cache.housekeeper.runRound()
        #expect(try await cache.put([2], url: "https://b/").unstoredReason == .directoryLost)
        #expect(cache.statistics().refusal == .directoryLost)
    }

    @Test func aPurgeIsRecordedInADirectoryThatWasMoved() async throws {
        let cache = try Cache.openWithoutHousekeeping(.test(directory))
        try await cache.put([1], url: url)
        try await cache.put([2], url: "https://b/")
        let moved = directory.path + ".moved"
        #expect(rename(directory.path, moved) == 0)
        cache.housekeeper.runRound()
        #expect(try await cache.purge(.url(url)).purged == 1)
        cache.close()
        #expect(rename(moved, directory.path) == 0)
        let again = try Cache.open(directory)
        defer { again.close() }
        #expect(try await again.bytes(url: url) == nil)
        #expect(try await again.bytes(url: "https://b/") == [2])
    }

    /// Makes every change of objects fail, as a disk does.
    private func refuseChanges() throws -> SQLiteConnection {
        let database = try SQLiteConnection(path: directory.path + "/ledger.sqlite")
        for change in ["INSERT", "DELETE", "UPDATE"] {
            try database.execute(
                "CREATE TRIGGER refuse_\(change) BEFORE \(change) ON cache_state BEGIN SELECT RAISE(ABORT, 'refused'); END")
        }
        return database
    }

    private func allowChanges(_ database: SQLiteConnection) throws {
        for change in ["INSERT", "DELETE", "UPDATE"] { try database.execute("DROP TRIGGER refuse_\(change)") }
    }

    /// Housekeeping, whose own work fails in each round, would otherwise run without a pause.
    @Test func aDatabaseThatKeepsFailingWakesHousekeepingOnce() throws {
        let (files, purges) = (try CacheDirectory(path: directory.path), PurgeIndex())
        let ledger = try Ledger(directory: files.path, owners: [CacheTables.owned, PurgeTable.owned])
        let state = try ledger.read { try CacheTables($0, purges).state() }
        let wakes = Mutex(0)
        let changes = Mutex(
            IndexChanges(
                state, in: files, ledger, IndexStatus(state.totals, refusal: nil), purges, failure: nil, clock: .system,
                report: { _ in }, onFailure: { wakes.withLock { $0 += 1 } }))
        defer { changes.withLock { $0.close() } }
        let database = try refuseChanges()
        for _ in 0..<3 {
            let hasFailed = changes.withLock { (try? $0.change { try $0.setClean(false, hand: 0) }) == nil }
            #expect(hasFailed)
        }
        #expect(wakes.withLock { $0 } == 1)
        try allowChanges(database)
    }

    @Test func storingStopsWhileTheDatabaseFailsAndResumes() async throws {
        let time = ManualClock()
        let events = Mutex<[CacheEvent]>([])
        let cache = try Cache(
            configuration: .test(directory), clock: time.cacheClock, report: { event in events.withLock { $0.append(event) } },
            threads: CacheThreads(create: CacheThreads.system.create, includeHousekeeping: false), onStep: nil)
        defer { cache.close() }
        try await cache.put([1], url: url)
        let database = try refuseChanges()
        for number in 0..<3 {
            let outcome = try await cache.put([2], url: "https://b/\(number)")
            #expect(outcome.unstoredReason != nil)
            #expect(try outcome.rendition.descriptor.readAll() == [2])
        }
        #expect(try await cache.stage(expecting: 1).isInMemory)
        cache.forgetHot()
        #expect(try await cache.bytes(url: url) == [1])
        cache.housekeeper.runRound()
        try allowChanges(database)
        // The next attempt comes a second later.
        cache.housekeeper.runRound()
        #expect(try await cache.put([3], url: "https://c/").unstoredReason != nil)
        time.advance(2)
        cache.housekeeper.runRound()
        #expect(try await cache.put([3], url: "https://c/").isStored)
        let kinds = events.withLock { $0 }.map { if case .storingStopped = $0 { "stopped" } else { "\($0)" } }
        #expect(kinds == ["stopped", CacheEvent.storingResumed.description])
    }

    @Test(arguments: [false, true]) func aPurgeThatCannotBeRecordedIsInForce(isRecordedLater: Bool) async throws {
        let time = ManualClock()
        var cache = try Cache.openWithoutHousekeeping(.test(directory), clock: time.cacheClock)
        try await cache.put([1], url: url)
        try await cache.put([2], url: "https://b/")
        let epoch = cache.epoch
        let database = try refuseChanges()
        let error = await #expect(throws: CacheError.self) { try await cache.purge(.url(url)) }
        #expect(error?.description.contains("could not be written to disk") == true)
        #expect(cache.purges.overtook(epoch, sourceURL: url))
        #expect(cache.hotAlias(.test(url)) == nil)
        #expect(cache.hotObject(.test(url)) == nil)
        #expect(try await cache.bytes(url: url) == nil)
        #expect(await cache.object(.test(url)) == nil)
        try allowChanges(database)
        if isRecordedLater {
            cache.housekeeper.runRound()
            #expect(try await cache.bytes(url: "https://b/") == [2])
        }
        cache.close()
        cache = try Cache.openWithoutHousekeeping(.test(directory), clock: time.cacheClock)
        defer { cache.close() }
        // Without a record, the removal of the file has the effect of the purge.
        #expect(try await cache.bytes(url: url) == nil)
        #expect(try await cache.bytes(url: "https://b/") == [2])
    }

    @Test func aRevalidationThatCannotBeRecordedIsRecordedLater() async throws {
        let time = ManualClock()
        let cache = try Cache.openWithoutHousekeeping(.test(directory), clock: time.cacheClock)
        try await cache.put([1], url: url)
        try await cache.put([2], url: nil)
        let database = try refuseChanges()
        await cache.revalidateAll()
        #expect(await cache.object(.test("upload")) == nil)
        let rendition = try #require(await cache.alias(.test(url)))
        #expect(cache.freshness(of: rendition) == .expired)
        try allowChanges(database)
        cache.housekeeper.runRound()
        cache.close()
        let reopened = try Cache.open(directory, clock: time.cacheClock)
        defer { reopened.close() }
        #expect(reopened.freshness(of: try #require(await reopened.alias(.test(url)))) == .expired)
        try await reopened.put([1], url: "https://new/")
        #expect(reopened.freshness(of: try #require(await reopened.alias(.test("https://new/")))) != .expired)
    }

    @Test func aClosedStoreWritesNoPurge() throws {
        let cache = try Cache.openWithoutHousekeeping(.test(directory))
        cache.close()
        let contents = try directory.contents("ledger.sqlite")
        let purge = Purge(.all, madeAt: 0, isLocal: true, token: "t", entry: nil)
        let (_, failure) = cache.context.changes.withLock { $0.purge([purge]) }
        #expect(failure != nil)
        #expect(try directory.contents("ledger.sqlite") == contents)
    }

    @Test func aDirectoryThatCannotBeCreatedIsRefusedWithASentence() throws {
        try directory.create("file")
        var configuration = CacheConfiguration.test(directory)
        configuration.directory += "/file/cache"
        let error = #expect(throws: CacheError.self) { try Cache(configuration: configuration) }
        #expect(error?.description.contains("file/cache cannot be used: ") == true)
    }

    @Test func aDirectoryTakenByAnotherServerIsLeftToIt() async throws {
        let first = try Cache.open(directory)
        defer { first.close() }
        try await first.put([1], url: url)
        #expect(rename(directory.path, directory.path + ".moved") == 0)
        defer { try? directory.remove("../" + (directory.path + ".moved").split(separator: "/").last!) }
        let second = try Cache.open(directory)
        defer { second.close() }
        try await waitUntil("the loss") { try await first.put([2], url: "https://b/").unstoredReason == .directoryLost }
        try await second.put([3], url: "https://c/")
        #expect(try await second.bytes(url: "https://c/") == [3])
    }

    @Test func belowTheMinimumOfFreeSpaceRenditionsAreServedUnstored() async throws {
        var configuration = CacheConfiguration.test(directory)
        configuration.minFreeBytes = 1 << 60
        let events = Mutex<[CacheEvent]>([])
        let cache = try Cache(configuration: configuration) { event in events.withLock { $0.append(event) } }
        defer { cache.close() }
        let reported = events.withLock { $0 }
        #expect(reported.count == 1)
        guard case .freeSpaceBelowMinimum(_, 1 << 60)? = reported.first else {
            Issue.record("not reported at the start")
            return
        }
        let staged = try cache.staged([1, 2, 3])
        #expect(staged.isInMemory)
        let outcome = try await cache.publish(
            staged, as: .test(url), fileExtension: "mp4", facts: [9], alias: .test(url), epoch: cache.epoch)
        #expect(outcome.unstoredReason == .lowSpace)
        #expect(outcome.unstoredReason?.description.contains("cache.min_free_bytes") == true)
        #expect(events.withLock(\.count) == 1)
        #expect(try outcome.rendition.descriptor.readAll() == [1, 2, 3])
        #expect(outcome.rendition.facts == [9])
        #expect(outcome.rendition.content == ContentDigest(digest: SourceDigest(of: [1, 2, 3]).digest))
        #expect(cache.statistics().unstored == 1)
        #expect(!cache.statistics().isStoring)
        #expect(try await cache.bytes(url: url) == nil)
    }

    @Test(.enabled(if: SmallDisk.isPossible, "needs the right to mount"))
    func aFullDiskServesHitsAndRecovers() async throws {
        let disk = try #require(SmallDisk(on: directory.path, bytes: 16 << 20))
        // Housekeeping would evict for the file that is refused.
        let cache = try Cache.openWithoutHousekeeping(.test(directory))
        defer { cache.close() }
        for number in UInt64(0)..<20 { try await cache.put(noise(100_000, seed: number), url: "https://a/\(number)") }
        // Makes the reserve.
        cache.housekeeper.runRound()
        disk.fill()
        #expect(disk.free == 0)
        for number in UInt64(0)..<20 {
            #expect(try await cache.bytes(url: "https://a/\(number)") == noise(100_000, seed: number))
        }
        // A file on the disk could be created but not filled, so the staged file is in memory.
        let staged = try await cache.stage(expecting: 100_000)
        #expect(staged.isInMemory)
        for number in UInt64(20)..<25 {
            let outcome = try await publishInMemory(noise(100_000, seed: number), number, cache)
            #expect(outcome.unstoredReason == .diskFull)
        }
        // A purge is still recorded, and frees space.
        #expect(try await cache.purge(.url("https://a/0")).purged == 1)
        #expect(try await cache.bytes(url: "https://a/0") == nil)
        disk.empty()
        try await waitUntil("recovery") {
            cache.housekeeper.runRound()
            return try await cache.put(noise(100_000, seed: 30), url: "https://a/30").isStored
        }
        #expect(try await cache.bytes(url: "https://a/30") == noise(100_000, seed: 30))
        #expect(try await cache.bytes(url: "https://a/1") == noise(100_000, seed: 1))
        _ = consume disk
    }

    private func publishInMemory(_ bytes: [UInt8], _ number: UInt64, _ cache: Cache) async throws -> PublishOutcome {
        let url = "https://a/\(number)"
        return try await cache.publish(
            try cache.stageInMemory(because: .diskFull, containing: bytes), as: .test(url), fileExtension: "mp4",
            alias: .test(url), epoch: cache.epoch)
    }

    @Test(.enabled(if: SmallDisk.isPossible, "needs the right to mount"))
    func evictionFreesTheMinimumOfFreeSpace() async throws {
        let disk = try #require(SmallDisk(on: directory.path, bytes: 16 << 20))
        var configuration = CacheConfiguration.test(directory)
        configuration.minFreeBytes = 4 << 20
        let cache = try Cache(configuration: configuration)
        defer { cache.close() }
        for number in UInt64(0)..<60 { try await cache.put(noise(100_000, seed: number), url: "https://a/\(number)") }
        disk.fill(leaving: 2 << 20)
        try await waitUntil("eviction") { disk.free >= 4 << 20 }
        let statistics = cache.statistics()
        #expect(statistics.evictions >= 20 && statistics.evictions < 40)
        try await waitUntil("storing") { try await cache.put([1], url: "https://b/").isStored }
        _ = consume disk
    }

    @Test(.enabled(if: WriteProtection.isPossible, "neither chmod nor chattr keeps this process from writing"))
    func aReadOnlyDirectoryServesHitsAndStoresNothing() async throws {
        let cache = try Cache.open(directory)
        defer { cache.close() }
        try await cache.put([1], url: url)
        let protection = try ["objects", "staging"].map { try #require(WriteProtection(of: directory.path + "/" + $0)) }
        let outcome = try await cache.put([2], url: "https://b/")
        #expect(outcome.unstoredReason == .readOnly)
        #expect(try outcome.rendition.descriptor.readAll() == [2])
        #expect(try await cache.bytes(url: url) == [1])
        protection.forEach { $0.end() }
        #expect(try await cache.put([3], url: "https://b/").isStored)
    }
}
