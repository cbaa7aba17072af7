import Store
import TestSupport
import Testing

struct SQLiteConnectionTests {
    let directory: ScratchDirectory
    let connection: SQLiteConnection

    init() throws {
        directory = try ScratchDirectory()
        connection = try SQLiteConnection(path: directory.path("test.sqlite"))
        try connection.execute("CREATE TABLE things (number INTEGER, text TEXT, bytes BLOB)")
    }

    private func insert(_ values: [any SQLiteValue]) throws {
        try connection.run("INSERT INTO things VALUES (?, ?, ?)", values)
    }

    @Test(
        arguments: [
            (Int64.min, "", []), (.max, "ü\u{0}€", [0, 255]), (0, "a'b", Array(repeating: 7, count: 100_000)),
        ] as [(Int64, String, [UInt8])])
    func valuesComeBackAsTheyWere(number: Int64, text: String, bytes: [UInt8]) throws {
        try insert([number, text, bytes])
        let row = try connection.first("SELECT number, text, bytes FROM things") { row in
            (try row.value(0) as Int64, try row.value(1) as String, try row.value(2) as [UInt8])
        }
        #expect(row?.0 == number && row?.1 == text && row?.2 == bytes)
    }

    @Test func nothingAndAnEmptyBlobDiffer() throws {
        try insert([Int64?.none, String?.none, [UInt8]?.none])
        try insert([Int64?(1), String?(""), [UInt8]?([])])
        let rows = try connection.all("SELECT number, text, bytes FROM things ORDER BY rowid") { row in
            (try row.value(0) as Int64?, try row.value(1) as String?, try row.value(2) as [UInt8]?)
        }
        #expect(rows.map(\.0) == [nil, 1] && rows.map(\.1) == [nil, ""] && rows.map(\.2) == [nil, []])
    }

    @Test func valuesOfAnotherClassAreErrors() throws {
        try insert(["12", 5, "text"])
        // The column turns a text of digits into a number, the others keep what they get.
        #expect(try connection.first("SELECT number FROM things") { try $0.value(0) as Int64 } == 12)
        try connection.execute("CREATE TABLE loose (value); INSERT INTO loose VALUES ('12'), (NULL), (x'ff'), (2), (1.5)")
        var errors = 0
        try connection.forEach("SELECT value FROM loose") { row in
            for read: () throws -> Void in [
                { _ = try row.value(0) as Bool }, { _ = try row.value(0) as Int64 }, { _ = try row.value(0) as String },
                { _ = try row.value(0) as [UInt8] },
            ] {
                do {
                    try read()
                } catch {
                    #expect((error as? LedgerError)?.kind == .damage)
                    errors += 1
                }
            }
        }
        // One type fits the text, the blob and the number 2; none fits null and 1.5; 2 is no truth value.
        #expect(errors == 3 + 4 + 3 + 3 + 4)
    }

    @Test func textThatIsNotUTF8IsAnError() throws {
        try connection.execute("INSERT INTO things (text) VALUES (CAST(x'61ff' AS TEXT))")
        #expect(throws: LedgerError.self) {
            try connection.first("SELECT text FROM things") { try $0.value(0) as String }
        }
    }

    @Test func aStatementCanRunAgainAfterAnErrorInItsRows() throws {
        struct Stop: Error {}
        for number in Int64(0)..<3 { try insert([number, "", [UInt8]()]) }
        let sql = "SELECT number FROM things WHERE number >= ? ORDER BY number"
        #expect(throws: Stop.self) { try connection.forEach(sql, [Int64(0)]) { _ in throw Stop() } }
        #expect(try connection.all(sql, [Int64(1)]) { try $0.value(0) as Int64 } == [1, 2])
        #expect(try connection.first(sql, [Int64(9)]) { try $0.value(0) as Int64 } == nil)
    }

    @Test func changedRowsAreCounted() throws {
        for number in Int64(0)..<5 { try insert([number, "", [UInt8]()]) }
        try connection.run("DELETE FROM things WHERE number > ?", [1])
        #expect(connection.changedRows == 3)
    }

    @Test func anErrorRollsATransactionBack() throws {
        struct Stop: Error {}
        #expect(throws: Stop.self) {
            try connection.transaction(isChange: true) { connection in
                try connection.run("INSERT INTO things (number) VALUES (1)")
                throw Stop()
            }
        }
        #expect(try connection.first("SELECT COUNT(*) FROM things") { try $0.value(0) as Int64 } == 0)
        try connection.transaction(isChange: true) { try $0.run("INSERT INTO things (number) VALUES (1)") }
        #expect(try connection.first("SELECT COUNT(*) FROM things") { try $0.value(0) as Int64 } == 1)
    }

    @Test func aFileThatIsNoDatabaseIsCorrupt() throws {
        try directory.write("noise.sqlite", String(repeating: "*", count: 5000))
        let noise = try SQLiteConnection(path: directory.path("noise.sqlite"))
        let error = #expect(throws: LedgerError.self) { try noise.execute("SELECT * FROM sqlite_schema") }
        #expect(error?.kind == .damage)
    }

    @Test func aDirectoryThatIsMissingIsNoCorruption() throws {
        let error = #expect(throws: LedgerError.self) {
            try SQLiteConnection(path: directory.path("missing/test.sqlite"))
        }
        #expect(error?.kind != .damage)
    }
}
