import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Store

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
    private func expectAll() async throws {
        let cache = try Cache.open(directory)
        defer { cache.close() }
        #expect(try await cache.bytes(url: "https://a/1") == [1, 1])
        #expect(try await cache.bytes(url: "https://a/2") == [2, 2])
        #expect(await cache.alias(.test("https://a/2"))?.alias?.times.fetchedAt == 1_600_000_000)
        #expect(await cache.alias(.test("https://a/1"))?.facts == [1])
        #expect(try await cache.object(.test("upload"))?.descriptor.readAll() == [3, 3])
        #expect(await cache.alias(.test("https://a/gone")) == nil)
        #expect(await cache.object(.test("https://a/gone")) == nil)
        #expect(cache.statistics().objects == 3)
        #expect(cache.statistics().bytes == 6)
        #expect(cache.statistics().aliases == 2)
    }

    @Test func aClosedCacheOpensAsItWas() async throws {
        try await fill()
        try await expectAll()
    }

    // MARK: A missing or damaged database

    @Test func aCacheWithoutItsDatabaseBeginsEmpty() async throws {
        try await fill()
        try directory.remove("ledger.sqlite")
        let cache = try Cache.open(directory)
        defer { cache.close() }
        try await waitUntil("the orphans to be counted") { cache.statistics().orphans == 3 }
        #expect(directory.files().filter { $0.hasSuffix(".mp4") }.isEmpty)
        #expect(try await cache.put([1, 1], url: "https://a/1").isStored)
    }

    @Test(arguments: [
        "noise", "UPDATE cache_state SET sequence = 'x'", "UPDATE cache_state SET revalidated = -5",
        "UPDATE cache_state SET clean = 'x'", "UPDATE cache_state SET hand = 'x'", "UPDATE cache_state SET objects = -1",
        "UPDATE cache_state SET bytes = 1e300", "UPDATE cache_state SET bytes = 9223372036854775807",
        "DELETE FROM cache_state", "DROP TABLE cache_state", "UPDATE owners SET version = 99",
        "UPDATE owners SET version = 5 WHERE owner = 'cache'",
    ])
    func aDamagedDatabaseIsPutAside(damage: String) async throws {
        try await fill()
        if damage == "noise" { try directory.write(noise(20_000, seed: 3), to: "ledger.sqlite") } else { try change(damage) }
        let events = Mutex<[CacheEvent]>([])
        let cache = try Cache(configuration: .test(directory)) { event in events.withLock { $0.append(event) } }
        let reported = events.withLock { $0 }
        #expect(reported.count == 1)
        #expect(reported.first?.description.contains("was put aside as ledger.damaged") == true)
        #expect(directory.files("").contains("ledger.damaged"))
        #expect(cache.statistics().objects == 0)
        #expect(try await cache.put([1, 1], url: "https://a/1").isStored)
        try await waitUntil("the files to go") { directory.files().filter { $0.hasSuffix(".mp4") }.count == 1 }
        cache.close()
        let again = try Cache.open(directory)
        defer { again.close() }
        #expect(try await again.bytes(url: "https://a/1") == [1, 1])
    }

    @Test(.enabled(if: SmallDisk.isPossible, "needs the right to mount"))
    func theReserveGivesTheSpaceForAnotherDatabaseOnAFullDisk() async throws {
        let disk = try #require(SmallDisk(on: directory.path, bytes: 16 << 20))
        try await fill()
        try change("UPDATE owners SET version = 5 WHERE owner = 'cache'")
        try directory.create("reserve", [UInt8](repeating: 0, count: 4 << 20))
        disk.fill()
        let cache = try Cache.open(directory)
        defer { cache.close() }
        #expect(await cache.alias(.test("https://a/1")) == nil)
        _ = try await cache.purge(.all)
        _ = consume disk
    }

    @Test(arguments: ["x", "o"])
    func aPurgeThatCannotBeReadIsNamed(kind: String) async throws {
        try await fill()
        // The argument is still a URL, which is no id of an object.
        try change("UPDATE purges SET kind = '\(kind)'")
        let events = Mutex<[CacheEvent]>([])
        let cache = try Cache(configuration: .test(directory)) { event in events.withLock { $0.append(event) } }
        cache.close()
        let reported = events.withLock { $0 }
        #expect(reported.first?.description.hasSuffix(": a purge of the kind \(kind) cannot be read") == true)
    }

    @Test(arguments: [
        "UPDATE objects SET length = 'x'", "UPDATE objects SET length = -1", "UPDATE objects SET length = 9223372036854775807",
        "UPDATE objects SET content = 'x'", "UPDATE objects SET extension = '../x'", "UPDATE objects SET extension = x'ff'",
        "UPDATE objects SET created = 'x'", "UPDATE objects SET facts = 1.5", "UPDATE objects SET upload = 'x'",
        "UPDATE aliases SET fetched = 'x'", "UPDATE aliases SET fresh = 'x'",
        "UPDATE aliases SET fresh = -9223372036854775808", "UPDATE aliases SET url = x'ff'",
    ])
    func damageThatALookUpMeetsIsPutAsideToo(damage: String) async throws {
        try await fill()
        try change(damage)
        let events = Mutex<[CacheEvent]>([])
        let cache = try Cache(configuration: .test(directory)) { event in events.withLock { $0.append(event) } }
        defer { cache.close() }
        #expect(await cache.alias(.test("https://a/1")) == nil)
        try await waitUntil("another database") {
            events.withLock { $0 }.contains { if case .ledgerReplaced = $0 { true } else { false } }
        }
        try await waitUntil("storing") {
            let outcome = try await cache.put([1, 1], url: "https://a/1")
            return outcome.isStored || outcome.isExisting
        }
        #expect(try await cache.bytes(url: "https://a/1") == [1, 1])
        #expect(await cache.alias(.test("https://a/2")) == nil)
        try await waitUntil("the files to go") { directory.files().filter { $0.hasSuffix(".mp4") }.count == 1 }
    }

    /// Rows that are copied into the new database, and rows from whose numbers others count on.
    @Test(arguments: [
        "INSERT INTO purges VALUES (9223372036854775807, 'o', '$', 1, 1, 't', '', 1)",
        "INSERT INTO purges VALUES (1 << 61, 'o', '$', 1, 1, 't', '', 1)",
        "INSERT INTO purges VALUES (-1 << 61, 'u', 'https://a/1', 1, 1, 't', NULL, 1)",
        "INSERT INTO purges VALUES (1000, 'o', '$', 9223372036854775807, 1, 't', '', 1)",
        "UPDATE purge_floor SET sequence = 9223372036854775807", "UPDATE purge_floor SET made = 9223372036854775807",
        "UPDATE outbox_totals SET puts = 9223372036854775807, deletions = 1",
        "UPDATE outbox_totals SET sequence = 9223372036854775807", "UPDATE outbox_totals SET bytes = 'x'",
        "INSERT INTO outbox VALUES (9223372036854775807, '$', NULL, NULL, NULL, 0, 0, 0, 0, 1)",
        "INSERT INTO outbox VALUES (1, '$', NULL, NULL, NULL, 0, 0, 0, 0, 9223372036854775807)",
        "INSERT INTO outbox VALUES (1, '$', 'mp4', 'video/mp4', x'', 5, 0, 0, 0, NULL)",
        "INSERT INTO outbox VALUES (1, 'x', NULL, NULL, NULL, 0, 0, 9223372036854775807, 0, 1)",
    ])
    func numbersOutOfRangeCostTheDatabaseOnce(damage: String) async throws {
        try await fill()
        try change(damage.replacing("$", with: ObjectID.test("x").description))
        let events = Mutex<[CacheEvent]>([])
        for start in 1...2 {
            let cache = try Cache(configuration: .test(directory)) { event in events.withLock { $0.append(event) } }
            defer { cache.close() }
            let outbox = try Outbox(
                cache.ledger, OutboxConfiguration(directory: directory.path + "/outbox", maxBytes: 1 << 20), StoreMeter(),
                holdsPuts: true, report: { _ in })
            defer { outbox.close() }
            cache.sendDeletions(by: outbox)
            #expect(try await cache.put([5, UInt8(start)], url: "https://b/\(start)").isStored)
            _ = try await cache.purge(.object(.test("https://b/\(start)")))
            #expect(outbox.deletion(of: .test("https://b/\(start)")) != nil)
            #expect(try await cache.put([6], url: "https://c/\(start)").isStored)
            #expect(events.withLock { $0.count } == 1)
        }
    }

    // MARK: Crashes

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
        try await expectAll()
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

    private func change(_ sql: String) throws {
        try SQLiteConnection(path: directory.path + "/ledger.sqlite").execute("PRAGMA ignore_check_constraints = 1; \(sql)")
    }

    private func markAsCrashed() throws {
        try change("UPDATE cache_state SET clean = 0")
    }
}
