import Glibc
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Cache

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

    @Test func theLockMovesToTheRewrittenJournal() throws {
        let store = try Store(path: directory.path)
        defer { store.close() }
        _ = Reconciler(store, unless: { false }).run()
        let length = try directory.contents("journal").count
        store.compactJournal(floor: 0, unless: { false })
        #expect(try directory.contents("journal").count >= length)
        #expect(store.isInPlace)
        try directory.remove("lock")
        #expect(throws: CacheError.self) { try Store(path: directory.path) }
    }

    @Test(arguments: ["objects", "staging", "journal"])
    func aRemovedPartIsCreatedAgain(part: String) async throws {
        let cache = try Cache.open(directory)
        defer { cache.close() }
        try await cache.put([1], url: url)
        try directory.remove(part)
        if part != "staging" { try await waitUntil("a new directory") { try await cache.bytes(url: url) == nil } }
        try await waitUntil("storing") { try await cache.put([2], url: "https://b/").isStored }
        #expect(try await cache.bytes(url: "https://b/") == [2])
    }

    /// Replaces the journal by a directory, which cannot be opened as a journal.
    private func blockJournal() throws {
        #expect(rename(directory.path + "/journal", directory.path + "/kept") == 0)
        try directory.create("journal/file")
    }

    @Test(arguments: [false, true])
    func aJournalThatCannotBeOpenedAtFirstIsOpenedLater(isRestored: Bool) async throws {
        let cache = try Cache.openWithoutHousekeeping(.test(directory))
        defer { cache.close() }
        try await cache.put([1], url: url)
        try blockJournal()
        cache.housekeeper.runRound()
        #expect(try await cache.put([2], url: "https://b/").unstoredReason == .unavailable)
        try directory.remove("journal")
        if isRestored { #expect(rename(directory.path + "/kept", directory.path + "/journal") == 0) }
        cache.housekeeper.runRound()
        #expect(try await cache.put([3], url: "https://c/").isStored)
        #expect(try await cache.bytes(url: "https://c/") == [3])
        let old = try await cache.bytes(url: url)
        #expect(old == (isRestored ? [1] : nil))
    }

    @Test func aPurgeWithoutAJournalIsAppliedToTheOneThatReturns() async throws {
        let cache = try Cache.openWithoutHousekeeping(.test(directory))
        defer { cache.close() }
        try await cache.put([1], url: url)
        try await cache.put([2], url: "https://b/")
        try blockJournal()
        cache.housekeeper.runRound()
        await #expect(throws: CacheError.self) { try await cache.purge(.url(url)) }
        try directory.remove("journal")
        #expect(rename(directory.path + "/kept", directory.path + "/journal") == 0)
        cache.housekeeper.runRound()
        #expect(try await cache.bytes(url: url) == nil)
        #expect(try await cache.bytes(url: "https://b/") == [2])
        #expect(directory.files().count == 1)
    }

    @Test func aPurgeWithoutAJournalIsInForceButNotDurable() async throws {
        let cache = try Cache.openWithoutHousekeeping(.test(directory))
        defer { cache.close() }
        try await cache.put([1], url: url)
        let epoch = cache.epoch(for: url)
        try blockJournal()
        cache.housekeeper.runRound()
        let error = await #expect(throws: CacheError.self) { try await cache.purge(.url(url)) }
        #expect(error?.description.contains("could not be written to disk") == true)
        #expect(cache.isPurged(url, since: epoch))
        #expect(cache.hotAlias(.test(url)) == nil)
        #expect(cache.hotObject(.test(url)) == nil)
    }

    @Test func aClosedStoreWritesNoPurge() throws {
        let store = try Store(path: directory.path)
        store.close()
        let journal = try directory.contents("journal")
        var isInForce = false
        let (_, failure) = store.applyPurge(.all) { isInForce = true }
        #expect(isInForce)
        #expect(failure != nil)
        #expect(try directory.contents("journal") == journal)
    }

    @Test func aDirectoryThatCannotBeCreatedIsRefusedWithASentence() throws {
        try directory.create("file")
        var configuration = CacheConfiguration.test(directory)
        configuration.directory += "/file/cache"
        let error = #expect(throws: CacheError.self) { try Cache(configuration: configuration) }
        #expect(error?.description.contains("file/cache cannot be used: ") == true)
    }

    @Test func aDirectoryRemovedWhileInUseIsCreatedAgain() async throws {
        let cache = try Cache.open(directory)
        defer { cache.close() }
        try await cache.put([1], url: url)
        let held = try #require(cache.hotAlias(.test(url)))
        for part in ["journal", "index.sqlite", "objects", "staging", "lock"] { try directory.remove(part) }
        #expect(try held.descriptor.readAll() == [1])
        // A publish before the directory is opened again is served unstored.
        _ = try await cache.put([2], url: "https://b/").rendition.descriptor.readAll()
        try await waitUntil("a new directory") { try await cache.put([3], url: "https://c/").isStored }
        #expect(try await cache.bytes(url: "https://c/") == [3])
        // Removing the directory is meant to remove its contents.
        #expect(try await cache.bytes(url: url) == nil)
        #expect(cache.statistics().isStoring)
    }

    @Test func aDirectoryTakenByAnotherServerIsLeftToIt() async throws {
        let first = try Cache.open(directory)
        defer { first.close() }
        try await first.put([1], url: url)
        for part in ["journal", "index.sqlite", "objects", "staging", "lock"] { try directory.remove(part) }
        let second = try Cache.open(directory)
        defer { second.close() }
        let outcome = try await first.put([2], url: "https://b/")
        #expect(outcome.unstoredReason != nil)
        #expect(try outcome.rendition.descriptor.readAll() == [2])
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
            staged, as: .test(url), fileExtension: "mp4", facts: [9], alias: .test(url), epoch: cache.epoch(for: url))
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
        let cache = try Cache.open(directory)
        defer { cache.close() }
        for number in UInt64(0)..<20 { try await cache.put(noise(100_000, seed: number), url: "https://a/\(number)") }
        disk.fill()
        #expect(disk.free == 0)
        for number in UInt64(0)..<20 {
            #expect(try await cache.bytes(url: "https://a/\(number)") == noise(100_000, seed: number))
        }
        // A file on the disk could be created but not filled, so the staged file is in memory.
        let staged = try cache.stage(expecting: 100_000)
        #expect(staged.isInMemory)
        for number in UInt64(20)..<25 {
            let outcome = try await publishInMemory(noise(100_000, seed: number), number, cache)
            #expect(outcome.unstoredReason == .diskFull)
        }
        // A purge is still recorded, and frees space.
        #expect(try await cache.purge(.url("https://a/0")).purged == 1)
        #expect(try await cache.bytes(url: "https://a/0") == nil)
        disk.empty()
        try await waitUntil("recovery") { try await cache.put(noise(100_000, seed: 30), url: "https://a/30").isStored }
        #expect(try await cache.bytes(url: "https://a/30") == noise(100_000, seed: 30))
        #expect(try await cache.bytes(url: "https://a/1") == noise(100_000, seed: 1))
        _ = consume disk
    }

    private func publishInMemory(_ bytes: [UInt8], _ number: UInt64, _ cache: Cache) async throws -> PublishOutcome {
        let url = "https://a/\(number)"
        let staged = try cache.stageInMemory(because: .diskFull)
        #expect(bytes.withUnsafeBytes { write(staged.number, $0.baseAddress, $0.count) } == bytes.count)
        return try await cache.publish(
            staged, as: .test(url), fileExtension: "mp4", alias: .test(url), epoch: cache.epoch(for: url))
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
