import SQLite
import SystemIO
import TestSupport
import Testing

@testable import Cache

@Suite("An index that is behind the journal loses no stored rendition and keeps no purged one") struct IncompleteIndexTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory(inMemory: true)
    }

    private func execute(_ sql: String) throws {
        try SQLiteConnection(path: directory.path + "/index.sqlite").execute(sql)
    }

    /// Renews an alias with lines of 10 kB.
    private func renew(_ url: String, times: Int, in cache: Cache) async throws {
        let validators = Validators(etag: String(repeating: "x", count: 10_000), lastModified: nil)
        for number in 0..<times {
            let renewed = await cache.renew(
                .test(url), validators: validators, fetchedAt: Int64(number), freshFor: nil, epoch: cache.epoch(for: url))
            try #require(renewed != nil)
        }
    }

    // MARK: Files

    @Test func aRebuildKeepsAnObjectThatWasStoredAgainAfterItsPurge() async throws {
        let cache = try Cache.open(directory)
        try await cache.put([1], url: "https://a/again")
        try await cache.put([2], url: "https://a/gone")
        _ = try await cache.purge(.prefix("https://a/"))
        try await cache.put([3], url: "https://b/")
        // More than one transaction applies.
        try await renew("https://b/", times: 120, in: cache)
        #expect(try directory.contents("journal").count > 1 << 20)
        try await cache.put([1], url: "https://a/again")
        cache.close()
        let id = ObjectID.test("https://a/gone").description
        try directory.create("objects/\(id.prefix(2))/\(id.dropFirst(2)).mp4", [2])
        try directory.remove("index.sqlite")

        let again = try Cache.open(directory)
        defer { again.close() }
        try await waitUntil("the index") { !again.statistics().isRebuilding }
        try await waitUntil("the comparison of files and rows") { again.store.reconciliation == nil }
        #expect(try await again.bytes(url: "https://a/again") == [1])
        #expect(try await again.bytes(url: "https://b/") == [3])
        #expect(directory.files().count == 2)
        try await waitUntil("the count of orphans") { again.statistics().orphans == 1 }
    }

    /// A large purge removes its files in several turns. Between two of them the object is stored again and the index fails.
    @Test func aPurgeKeepsTheFileOfAnObjectThatAReplacedIndexDoesNotKnowYet() async throws {
        let cache = try Cache.openWithoutHousekeeping(.test(directory))
        defer { cache.close() }
        try await cache.put([1], url: "https://a/")
        let (removed, _) = cache.store.applyPurge(.all) {}
        #expect(removed.objects.count == 1)
        #expect(try await cache.put([1], url: "https://a/").isStored)
        try execute("UPDATE objects SET length = -1")
        #expect(cache.store.objectRow(.test("https://a/")) == nil)
        #expect(cache.store.isCatchingUp)
        cache.store.removeFiles(of: removed.objects)
        cache.housekeeper.runRound()
        cache.forgetHot()
        #expect(try await cache.bytes(url: "https://a/") == [1])
    }

    // MARK: Eviction

    @Test(arguments: [false, true])
    func aPublishEvictsNothingForObjectsThatWereEvictedBeforeTheRebuild(isRestarted: Bool) async throws {
        var configuration = CacheConfiguration.test(directory)
        configuration.maxBytes = 1 << 20
        let first = try Cache.openWithoutHousekeeping(configuration)
        first.housekeeper.runRound()
        for (number, url) in ["https://used/", "https://evicted/", "https://b/", "https://c/"].enumerated() {
            try await first.put(noise(300_000, seed: UInt64(number)), url: url)
            #expect(first.hotAlias(.test("https://used/")) != nil)
        }
        first.close()
        #expect(directory.files().count == 3)
        try directory.remove("index.sqlite")
        if isRestarted {
            // This server ends after the rebuild and before files and rows are compared.
            let second = try Cache.openWithoutHousekeeping(configuration)
            second.store.catchUp()
            second.close()
        }

        let cache = try Cache.openWithoutHousekeeping(configuration)
        defer { cache.close() }
        // The journal does not record the eviction, so the evicted object has a row again.
        cache.store.catchUp()
        #expect(cache.statistics().objects == 4)
        #expect(cache.statistics().rebuilds == (isRestarted ? 0 : 1))
        #expect(try await cache.put([1], url: "https://d/").isStored)
        #expect(cache.statistics().evictions == 0)
        cache.housekeeper.runRound()
        for url in ["https://used/", "https://b/", "https://c/", "https://d/"] {
            #expect(await cache.alias(.test(url)) != nil)
        }
        #expect(await cache.alias(.test("https://evicted/")) == nil)
        #expect(cache.statistics().bytes == 900_001)
    }

    // MARK: The journal

    @Test func aLineThatTheIndexAppliesBeforeOlderOnesIsDurable() throws {
        let folder = try CacheDirectory(path: directory.path)
        var journal = try Journal.open(in: folder)
        _ = try journal.append([.upload(.test("a"))], durable: false)
        let index = try ServingIndex(in: folder, following: journal) { _ in }
        var log = ChangeLog(journal, index: index, files: folder.objects)
        var isDurable = [log.isDurable]
        _ = try log.record([.upload(.test("a"))])
        isDurable.append(log.isDurable)
        while log.followNextLines() {}
        _ = try log.record([.upload(.test("a"))])
        isDurable.append(log.isDurable)
        log.close(hand: 0)
        #expect(isDurable == [false, true, false])
    }

    @Test func aRewriteDuringWhichTheIndexIsReplacedIsDiscarded() async throws {
        let cache = try Cache.openWithoutHousekeeping(.test(directory))
        defer { cache.close() }
        try await cache.put([1], url: "https://a/")
        try await renew("https://a/", times: 20, in: cache)
        cache.housekeeper.runRound()
        let journal = try directory.contents("journal")
        let store = cache.store
        var isReplaced = false
        store.compactJournal(floor: 0) {
            if !isReplaced {
                try? execute("UPDATE objects SET length = -1")
                _ = store.objectRow(.test("https://a/"))
                isReplaced = store.isCatchingUp
                store.catchUp()
            }
            return false
        }
        #expect(isReplaced)
        #expect(!store.isCatchingUp)
        #expect(try directory.contents("journal") == journal)
        #expect(!directory.files("").contains(JournalCompaction.fileName))
    }

    // MARK: Purges

    @Test func aPurgeRemovesFromMemoryWhatTheIndexDoesNotKnowYet() async throws {
        var configuration = CacheConfiguration.test(directory)
        configuration.hotEntries = 2
        let cache = try Cache.openWithoutHousekeeping(configuration)
        defer { cache.close() }
        let others = (0..<8).map { "https://b/\($0)" }
        for url in others { try await cache.put([2], url: url, object: .test("other")) }
        // The trigger refuses what a full disk would refuse.
        try execute("CREATE TRIGGER full BEFORE INSERT ON objects BEGIN SELECT RAISE(ABORT, 'full'); END")
        #expect(try await cache.put([1], url: "https://a/").isStored)
        // Displace the alias from memory, but not the object.
        for url in others { #expect(await cache.alias(.test(url)) != nil) }
        #expect(cache.hotAlias(.test("https://a/")) == nil)
        #expect(cache.hotObject(.test("https://a/")) != nil)

        _ = try await cache.purge(.url("https://a/"))
        #expect(cache.hotObject(.test("https://a/")) == nil)
        #expect(cache.store.isCatchingUp)
        try execute("DROP TRIGGER full")
        cache.housekeeper.runRound()
        #expect(await cache.object(.test("https://a/")) == nil)
        #expect(await cache.object(.test("other")) != nil)
        #expect(directory.files().count == 1)
    }
}
