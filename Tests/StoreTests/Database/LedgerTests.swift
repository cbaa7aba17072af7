import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Store

struct LedgerTests {
    let directory: ScratchDirectory
    private let numbers = Ledger.Tables(owner: "numbers", steps: ["CREATE TABLE numbers (number INTEGER)"])

    init() throws {
        directory = try ScratchDirectory()
    }

    private func open(_ owners: [Ledger.Tables]? = nil) throws -> Ledger {
        try Ledger(directory: directory.path, owners: owners ?? [numbers])
    }

    private func count(_ connection: SQLiteConnection) throws -> Int64 {
        try connection.first("SELECT COUNT(*) FROM numbers") { try $0.value(0) } ?? 0
    }

    private func insert(_ ledger: Ledger, _ durability: Ledger.Durability = .normal, _ number: Int = 1) throws {
        try ledger.write(durability) { try $0.run("INSERT INTO numbers VALUES (?)", [number]) }
    }

    // MARK: Transactions

    @Test func aReaderSeesOneStateWhileAnotherConnectionChangesIt() throws {
        let ledger = try open()
        try ledger.read { reader in
            #expect(try count(reader) == 0)
            try insert(ledger)
            #expect(try count(reader) == 0)
        }
        #expect(try ledger.read(count) == 1)
    }

    @Test func aReaderThatOpensDoesNotWaitForATransaction() async throws {
        let ledger = try open()
        let (stall, read) = (Stall(), Stall())
        try await stall.begin { wait in _ = try? ledger.write(.normal) { _ in wait() } }
        defer { stall.end() }
        // Suspends until the reader is open.
        try await read.begin { wait in _ = try? ledger.read { _ in wait() } }
        read.end()
    }

    /// A write to a mapped file on a full disk may end the process.
    @Test func noFileOfTheDatabaseIsMapped() throws {
        try directory.write("ledger.sqlite-shm", "of an older version")
        let ledger = try open()
        try insert(ledger, .full)
        #expect(try ledger.read(count) == 1)
        // `String(contentsOfFile:)` reads the first page only, because the file states no length.
        let file = try FileHandle(forReadingFrom: URL(filePath: "/proc/self/maps"))
        let maps = String(decoding: try file.readToEnd() ?? Data(), as: UTF8.self)
        #expect(maps.contains("[stack]") && !maps.contains(directory.path))
        #expect(!directory.names().contains("ledger.sqlite-shm"))
    }

    @Test func readersCannotChangeTables() throws {
        let ledger = try open()
        #expect(throws: LedgerError.self) { try ledger.read { try $0.run("INSERT INTO numbers VALUES (1)") } }
        #expect(try ledger.read(count) == 0)
    }

    @Test func threadsReadAndWriteAtTheSameTime() async throws {
        let ledger = try open()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for task in 0..<8 {
                group.addTask {
                    for number in 0..<50 {
                        if task % 2 == 0 {
                            try insert(ledger, number % 10 == 0 ? .full : .normal, number)
                        } else {
                            // Two queries of one transaction agree.
                            let counts = try ledger.read { [try count($0), try count($0)] }
                            #expect(counts[0] == counts[1])
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(try ledger.read(count) == 200)
    }

    @Test func anErrorRollsATransactionBackAndKeepsItsKind() throws {
        let ledger = try open()
        let error = #expect(throws: LedgerError.self) {
            try ledger.write(.full) { connection in
                try connection.run("INSERT INTO numbers VALUES (1)")
                throw LedgerError(.damage, "odd")
            }
        }
        #expect(error?.kind == .damage && error?.description == "odd")
        #expect(try ledger.read(count) == 0)
        let unknown = #expect(throws: LedgerError.self) { try ledger.read { try $0.run("SELECT * FROM missing") } }
        #expect(unknown?.kind == .damage)
    }

    // MARK: Opening and closing

    @Test func aClosedLedgerRefusesAndKeepsItsRows() throws {
        let ledger = try open()
        try insert(ledger)
        try ledger.sync()
        ledger.close()
        ledger.close()
        for body: () throws -> Void in [{ _ = try ledger.read(count) }, { try insert(ledger) }] {
            let error = #expect(throws: LedgerError.self) { try body() }
            #expect(error?.kind == .closed)
        }
        // Closing empties the log.
        #expect(try Data(contentsOf: URL(filePath: directory.path("ledger.sqlite-wal"))).isEmpty)
        let again = try open()
        #expect(try again.read(count) == 1)
        #expect(again.replacedBecause == nil)
    }

    @Test func tablesAreMigratedStepByStep() throws {
        let first = try open()
        try insert(first)
        first.close()
        let steps = ["CREATE TABLE numbers (number INTEGER)", "ALTER TABLE numbers ADD COLUMN name TEXT DEFAULT 'x'"]
        let other = Ledger.Tables(owner: "other", steps: ["CREATE TABLE others (number INTEGER)"])
        for _ in 0..<2 {
            let second = try open([Ledger.Tables(owner: "numbers", steps: steps), other])
            #expect(try second.read { try $0.first("SELECT name FROM numbers") { try $0.value(0) as String } } == "x")
            #expect(try second.read { try $0.all("SELECT * FROM others") { _ in 1 } }.isEmpty)
            second.close()
        }
        // A later version has written it.
        #expect(try open().replacedBecause?.contains("unknown version 2") == true)
    }

    @Test func aVersionBeforeTheFirstIsNotRead() throws {
        func open(_ steps: [String]) throws -> Ledger {
            try self.open([Ledger.Tables(owner: "numbers", firstVersion: 2, steps: steps)])
        }
        try self.open().close()
        let (first, second) = ("CREATE TABLE numbers (number INTEGER)", "ALTER TABLE numbers ADD COLUMN name TEXT DEFAULT 'x'")
        let ledger = try open([first])
        #expect(ledger.replacedBecause?.contains("unknown version 1") == true)
        try insert(ledger)
        ledger.close()
        let later = try open([first, second])
        #expect(later.replacedBecause == nil)
        #expect(try later.read { try $0.first("SELECT name FROM numbers") { try $0.value(0) as String } } == "x")
        later.close()
        #expect(try open([first]).replacedBecause?.contains("unknown version 3") == true)
    }

    @Test(arguments: [false, true]) func aDamagedDatabaseIsPutAside(isFoundLater: Bool) throws {
        let ledger: Ledger
        if isFoundLater {
            ledger = try open()
            try insert(ledger)
            #expect(try ledger.read(count) == 1)
            try ledger.replaceDamaged()
        } else {
            try directory.write("ledger.sqlite", String(repeating: "*", count: 5000))
            ledger = try open()
            #expect(ledger.replacedBecause != nil)
        }
        #expect(directory.names().contains("ledger.damaged"))
        #expect(try ledger.read(count) == 0)
        try insert(ledger, .full)
        #expect(try ledger.read(count) == 1)
        ledger.close()
        #expect(try open().read(count) == 1)
    }

    /// A damaged database leaves its path before another one is opened, which may fail for lack of descriptors.
    @Test func onlyAnOpenDatabaseIsMissedAtItsPath() throws {
        let ledger = try open()
        #expect(ledger.isInPlace)
        try FileManager.default.removeItem(atPath: directory.path("ledger.sqlite"))
        #expect(!ledger.isInPlace)
        ledger.close()
        #expect(ledger.isInPlace)
    }

    @Test(arguments: [false, true]) func whatCanBeReadOfADamagedDatabaseIsKept(isFoundLater: Bool) throws {
        let salvaging = Ledger.Tables(
            owner: "numbers", steps: ["CREATE TABLE numbers (number INTEGER)"],
            salvage: { damaged, new in
                try damaged.forEach("SELECT number FROM numbers ORDER BY rowid") { row in
                    try new.run("INSERT INTO numbers VALUES (?)", [try row.value(0) as Int64])
                }
            })
        let ledger = try open([salvaging])
        for number in 1...3 { try insert(ledger, .full, number) }
        // The rows before it are kept.
        try ledger.write(.full) { try $0.run("INSERT INTO numbers VALUES ('x')") }
        try insert(ledger, .full, 4)
        if isFoundLater {
            try ledger.replaceDamaged()
            #expect(try ledger.read(count) == 3)
        } else {
            try ledger.write(.full) { try $0.run("UPDATE owners SET version = 99") }
        }
        ledger.close()
        let again = try open([salvaging])
        #expect((again.replacedBecause == nil) == isFoundLater)
        #expect(try again.read(count) == 3)
        #expect(directory.names().contains("ledger.damaged"))
    }

    @Test func aReaderNeverUsesAnotherDatabaseAtThePath() throws {
        let ledger = try open()
        for name in ["ledger.sqlite", "ledger.sqlite-wal"] {
            try FileManager.default.removeItem(atPath: directory.path(name))
        }
        let other = try open()
        try insert(other)
        #expect(throws: LedgerError.self) { try ledger.read(count) }
        // Its end leaves the log of the other one.
        ledger.close()
        #expect(try other.read(count) == 1)
        try insert(other, .full)
        other.close()
        #expect(try open().read(count) == 2)
    }
}
