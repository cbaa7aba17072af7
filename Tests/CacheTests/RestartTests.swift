import SQLite
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Cache

@Suite("A start repairs what a crash, a power loss or an operator left") struct RestartTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// Fills a directory with three renditions of two sources and one upload, and purges a fourth.
    private func fill() async throws {
        let cache = try Cache.open(directory)
        defer { cache.close() }
        try await cache.put([1, 1], url: "https://a/1", facts: [1])
        try await cache.put([2, 2], url: "https://a/2", fetchedAt: 1_600_000_000)
        try await cache.put([3, 3], url: nil)
        try await cache.put([4, 4], url: "https://a/gone")
        _ = try await cache.purge(.url("https://a/gone"))
    }

    /// Opens the directory again and looks up everything that ``fill()`` stored there.
    private func expectAll(rebuilds: Int64) async throws {
        let cache = try Cache.open(directory)
        defer { cache.close() }
        try await waitUntil("the index") { !cache.statistics().isRebuilding }
        #expect(try await cache.bytes(url: "https://a/1") == [1, 1])
        #expect(try await cache.bytes(url: "https://a/2") == [2, 2])
        #expect(await cache.alias(.test("https://a/2"))?.alias?.fetchedAt == 1_600_000_000)
        #expect(await cache.alias(.test("https://a/1"))?.facts == [1])
        #expect(try await cache.object(.test("upload"))?.descriptor.readAll() == [3, 3])
        #expect(await cache.alias(.test("https://a/gone")) == nil)
        #expect(await cache.object(.test("https://a/gone")) == nil)
        #expect(cache.statistics().objects == 3)
        #expect(cache.statistics().bytes == 6)
        #expect(cache.statistics().rebuilds == rebuilds)
    }

    @Test func aClosedCacheOpensAsItWas() async throws {
        try await fill()
        try await expectAll(rebuilds: 0)
    }

    @Test func aMissingIndexIsRebuilt() async throws {
        try await fill()
        try directory.remove("index.sqlite")
        try await expectAll(rebuilds: 1)
    }

    @Test func aBrokenIndexIsRebuilt() async throws {
        try await fill()
        try directory.write(noise(20_000, seed: 3), to: "index.sqlite")
        try await expectAll(rebuilds: 1)
    }

    @Test func anIndexWithAnotherSchemaIsRebuilt() async throws {
        try await fill()
        // SQLite's user_version, at byte 60 of the header.
        var bytes = try directory.contents("index.sqlite")
        bytes[63] = 99
        try directory.write(bytes, to: "index.sqlite")
        try await expectAll(rebuilds: 1)
    }

    @Test func anIndexOfAnotherJournalIsRebuilt() async throws {
        try await fill()
        let other = try TemporaryDirectory()
        let cache = try Cache.open(other)
        try await cache.put([9], url: "https://other/")
        cache.close()
        try directory.write(other.contents("index.sqlite"), to: "index.sqlite")
        try await expectAll(rebuilds: 1)
    }

    @Test func anOlderIndexCatchesUpWithTheJournal() async throws {
        let cache = try Cache.open(directory)
        try await cache.put([1, 1], url: "https://a/1", facts: [1])
        try await cache.put([4, 4], url: "https://a/gone")
        cache.close()
        let old = try directory.contents("index.sqlite")
        let again = try Cache.open(directory)
        try await again.put([2, 2], url: "https://a/2", fetchedAt: 1_600_000_000)
        try await again.put([3, 3], url: nil)
        _ = try await again.purge(.url("https://a/gone"))
        again.close()
        try directory.write(old, to: "index.sqlite")
        try await expectAll(rebuilds: 0)
    }

    @Test func aPartialLineAtTheEndOfTheJournalIsOverwritten() async throws {
        try await fill()
        try directory.remove("index.sqlite")
        var journal = try directory.contents("journal")
        journal += Array("0123456789abcdef\tA\t99999\tdead".utf8)
        try directory.write(journal, to: "journal")
        try await expectAll(rebuilds: 1)
        let cache = try Cache.open(directory)
        try await cache.put([5], url: "https://a/5")
        cache.close()
        try directory.remove("index.sqlite")
        let after = try Cache.open(directory)
        defer { after.close() }
        try await waitUntil("the index") { !after.statistics().isRebuilding }
        #expect(try await after.bytes(url: "https://a/5") == [5])
    }

    @Test func aDamagedLineAffectsNoOther() async throws {
        let cache = try Cache.open(directory)
        for number in 1...3 { try await cache.put([UInt8(number)], url: "https://a/\(number)") }
        cache.close()
        try directory.remove("index.sqlite")
        var journal = try directory.contents("journal")
        let lines = journal.split(separator: 10)
        // The header, then one line per object and alias; the line of the second object is damaged.
        let offset = lines[0].count + lines[1].count + lines[2].count + 3 + 40
        journal[offset] ^= 1
        try directory.write(journal, to: "journal")
        let after = try Cache.open(directory)
        defer { after.close() }
        try await waitUntil("the orphan to go") { after.statistics().orphans == 1 }
        #expect(try await after.bytes(url: "https://a/1") == [1])
        #expect(try await after.bytes(url: "https://a/2") == nil)
        #expect(try await after.bytes(url: "https://a/3") == [3])
        #expect(directory.files().count == 2)
    }

    @Test func rowsAreHiddenUntilTheIndexHasCaughtUp() async throws {
        try await fill()
        try directory.remove("index.sqlite")
        let store = try Store(path: directory.path)
        // Nothing catches up here: a later line of the journal may purge the alias.
        #expect(store.isCatchingUp)
        #expect(store.aliasRow(.test("https://a/1")) == nil)
        store.catchUp()
        #expect(!store.isCatchingUp)
        #expect(store.aliasRow(.test("https://a/1")) != nil)
        store.close()
    }

    @Test func filesThatACrashLeftAreRemoved() async throws {
        try await fill()
        let id = ObjectID.test("orphan").description
        let orphan = "objects/\(id.prefix(2))/\(id.dropFirst(2)).mp4"
        try directory.create(orphan, [1, 2, 3])
        try directory.create("objects/ab/strange file", [1])
        try directory.create("staging/half", [1])
        try markAsCrashed()
        let cache = try Cache.open(directory)
        try await waitUntil("the orphans to go") { cache.statistics().orphans == 2 }
        cache.close()
        #expect(directory.files("staging").isEmpty)
        #expect(directory.files().count == 3)
        try await expectAll(rebuilds: 0)
    }

    @Test func aRowWithoutAFileIsRemoved() async throws {
        try await fill()
        for name in directory.files() where try directory.contents("objects/" + name) == [1, 1] {
            try directory.remove("objects/" + name)
        }
        try markAsCrashed()
        let cache = try Cache.open(directory)
        defer { cache.close() }
        try await waitUntil("the row to go") { cache.statistics().objects == 2 }
        #expect(await cache.alias(.test("https://a/1")) == nil)
        #expect(try await cache.bytes(url: "https://a/2") == [2, 2])
    }

    // MARK: Damaged state

    @Test(arguments: [
        "UPDATE state SET applied = 'x'", "UPDATE state SET applied = -5", "UPDATE state SET applied = x'00'",
        "UPDATE state SET journal = NULL", "UPDATE state SET clean = 'x'", "UPDATE state SET hand = 'x'",
        "UPDATE state SET objects = 'x'", "UPDATE state SET objects = -1", "UPDATE state SET bytes = 1e300",
        "UPDATE state SET bytes = 9223372036854775807", "DELETE FROM state",
    ])
    func stateOfTheWrongTypeInTheIndexCausesARebuild(damage: String) async throws {
        try await fill()
        try damageIndex(damage)
        let events = Mutex<[CacheEvent]>([])
        let cache = try Cache(configuration: .test(directory)) { event in events.withLock { $0.append(event) } }
        try await waitUntil("the index") { !cache.statistics().isRebuilding }
        cache.close()
        let reported = events.withLock { $0 }
        #expect(reported.count == 1)
        #expect(reported.first?.description.contains("rebuilt from the journal") == true)
        try await expectAll(rebuilds: 0)
    }

    @Test(arguments: [
        "UPDATE objects SET length = 'x'", "UPDATE objects SET length = -1", "UPDATE objects SET length = 9223372036854775807",
        "UPDATE objects SET id = sequence", "UPDATE objects SET content = 'x'", "UPDATE objects SET extension = '../x'",
        "UPDATE objects SET extension = x'ff'", "UPDATE objects SET created = 'x'", "UPDATE objects SET facts = 1.5",
        "UPDATE objects SET uploaded = 'x'", "UPDATE aliases SET sequence = 'x'", "UPDATE aliases SET fetched = 'x'",
        "UPDATE aliases SET fresh = 'x'", "UPDATE aliases SET fresh = -9223372036854775808", "UPDATE aliases SET url = x'ff'",
    ])
    func rowsOfTheWrongTypeInTheIndexLoseNothing(damage: String) async throws {
        try await fill()
        try damageIndex(
            "DROP TRIGGER object_added; DROP TRIGGER object_removed; PRAGMA ignore_check_constraints = 1; " + damage)
        try markAsCrashed()
        let cache = try Cache.open(directory)
        // Some damage is a miss at first, and the index is rebuilt in the background.
        for url in ["https://a/1", "https://a/2"] {
            try await waitUntil("the rendition") {
                let bytes = try await cache.bytes(url: url)
                return bytes == [UInt8(url.suffix(1))!, UInt8(url.suffix(1))!]
            }
        }
        try await waitUntil("the upload") { try await cache.object(.test("upload"))?.descriptor.readAll() == [3, 3] }
        #expect(try await cache.purge(.prefix("https://")).purged == 2)
        cache.close()
        try Cache.open(directory).close()
    }

    private func damageIndex(_ sql: String) throws {
        let path = directory.path + "/index.sqlite"
        // Without NOT NULL in the schema, which a connection reads when it opens, any value is accepted.
        if sql.contains("NULL") {
            try SQLiteConnection(path: path).execute(
                "PRAGMA writable_schema = 1; UPDATE sqlite_schema SET sql = replace(sql, 'NOT NULL', '')")
        }
        try SQLiteConnection(path: path).execute("PRAGMA ignore_check_constraints = 1; \(sql)")
    }

    private func markAsCrashed() throws {
        let index = try Index(path: directory.path + "/index.sqlite")
        try index.setClean(false)
        index.close()
    }
}
