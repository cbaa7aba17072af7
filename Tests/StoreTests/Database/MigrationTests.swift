import SystemIO
import TestSupport
import Testing

@testable import Store

@Suite("The directory of an older version is migrated") struct MigrationTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// Stores one byte for each URL, nil for an upload, in a directory whose tables have a former version.
    private func fill(_ urls: [String?], version: Int, _ change: (SQLiteConnection) throws -> Void = { _ in }) async throws {
        let cache = try Cache.open(directory)
        for (number, url) in urls.enumerated() { try await cache.put([UInt8(number)], url: url, object: .test("\(number)")) }
        let objects = try cache.ledger.read { database in
            try database.all("SELECT id, content, space FROM objects ORDER BY sequence") {
                (id: try $0.value(0) as [UInt8], content: try $0.value(1) as [UInt8], space: try $0.value(2) as Int64)
            }
        }
        cache.close()
        for suffix in ["", "-wal"] { try? directory.remove("ledger.sqlite\(suffix)") }
        let steps = Array(CacheTables.steps.prefix(version))
        let ledger = try Ledger(directory: directory.path, owners: [Ledger.Tables(owner: "cache", steps: steps)])
        defer { ledger.close() }
        try ledger.write(.full) { database in
            for (number, (url, object)) in zip(urls, objects).enumerated() {
                let sequence = Int64(2 * number + 1)
                try database.run(
                    "INSERT INTO objects VALUES (?, ?, 'mp4', 1, ?, 1700000000, x'', ?, ?)",
                    [sequence, object.id, object.content, url == nil, object.space])
                guard let url else { continue }
                try database.run(
                    """
                    INSERT INTO aliases (sequence, key, former, object, url, etag, fetched, space)
                    VALUES (?, ?, 0, ?, ?, '"x"', 1700000000, 300)
                    """, [sequence + 1, AliasKey.test(url).bytes, sequence, url])
            }
            try database.run("UPDATE cache_state SET sequence = ?", [Int64(2 * urls.count)])
            try change(database)
        }
    }

    @Test(arguments: 1...5) func whatIsStoredIsKept(version: Int) async throws {
        try await fill(["https://a/1", nil], version: version)
        let cache = try Cache.open(directory)
        defer { cache.close() }
        let found = try #require(await cache.alias(.test("https://a/1")))
        #expect(found.alias?.rendition == "" && found.alias?.validators.etag == "\"x\"")
        #expect(try await cache.bytes(url: "https://a/1") == [0])
        let statistics = cache.statistics()
        #expect(statistics.objects == 2 && statistics.bytes == 2 && statistics.aliases == 1)
        // The upload is one still.
        _ = try await cache.purge(.prefix("https://"))
        #expect(try await cache.object(.test("1"))?.descriptor.readAll() == [1])
    }

    @Test func whatWasPurgedStaysAway() async throws {
        try await fill(["https://all/", "https://object/", "https://p/1", nil, "https://a/"], version: 5) { database in
            // A purge of everything, one of an object, and one of a prefix, without a sweep.
            try database.run("UPDATE cache_state SET emptied = 2", [])
            try database.run("INSERT INTO doomed SELECT sequence, id, extension FROM objects WHERE sequence = 3", [])
            try database.run("INSERT INTO purging VALUES ('https://p/', 6)", [])
        }
        let cache = try Cache.open(directory)
        defer { cache.close() }
        for url in ["https://all/", "https://object/", "https://p/1"] { #expect(await cache.alias(.test(url)) == nil) }
        for number in 0...2 { #expect(await cache.object(.test("\(number)")) == nil) }
        #expect(await cache.object(.test("3")) != nil)
        #expect(try await cache.bytes(url: "https://a/") == [4])
        try await waitUntil("the rows and files to go") { cache.statistics().aliases == 1 && directory.files().count == 2 }
    }

    @Test(.enabled(if: SmallDisk.isPossible, "needs the right to mount"))
    func theReserveGivesTheSpaceForAMigrationOnAFullDisk() async throws {
        let disk = try #require(SmallDisk(on: directory.path, bytes: 16 << 20))
        try await fill(["https://a/1"], version: 5)
        try directory.create("reserve", [UInt8](repeating: 0, count: 4 << 20))
        disk.fill()
        let cache = try Cache.open(directory)
        defer { cache.close() }
        #expect(try await cache.bytes(url: "https://a/1") == [0])
        _ = consume disk
    }

    /// A cluster's stream delivers all its purges to a node that has migrated.
    @Test func anEarlierPurgeSparesWhatWasStoredAfterIt() async throws {
        try await fill(["https://a/1", nil], version: 5)
        let cache = try Cache.open(directory)
        defer { cache.close() }
        _ = try await cache.purge(.all, madeAt: 1_699_999_000_000)
        #expect(try await cache.bytes(url: "https://a/1") == [0])
        #expect(try await cache.object(.test("1"))?.descriptor.readAll() == [1])
        // The clocks may differ by as much.
        _ = try await cache.purge(.all, madeAt: 1_699_999_900_000)
        #expect(await cache.alias(.test("https://a/1")) == nil)
        #expect(await cache.object(.test("1")) == nil)
    }
}
