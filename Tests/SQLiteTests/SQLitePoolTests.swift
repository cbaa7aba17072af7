import Foundation
import SQLite
import Synchronization
import TestSupport
import Testing

struct SQLitePoolTests {
    let directory: ScratchDirectory
    private var path: String { directory.path("test.sqlite") }

    init() throws {
        directory = try ScratchDirectory()
    }

    private func pool() throws -> SQLitePool {
        let pool = try SQLitePool(path: path) { try $0.execute("PRAGMA synchronous = NORMAL") }
        try pool.write { try $0.execute("CREATE TABLE IF NOT EXISTS numbers (number INTEGER)") }
        return pool
    }

    private func count(_ connection: SQLiteConnection) throws -> Int64 {
        try connection.first("SELECT COUNT(*) FROM numbers") { try $0.value(0) } ?? 0
    }

    @Test func aReaderSeesOneStateWhileAnotherConnectionChangesIt() throws {
        let pool = try pool()
        try pool.read { reader in
            #expect(try count(reader) == 0)
            try pool.write { try $0.run("INSERT INTO numbers VALUES (1)") }
            #expect(try count(reader) == 0)
        }
        #expect(try pool.read(count) == 1)
    }

    @Test func readersCannotChangeTables() throws {
        let pool = try pool()
        #expect(throws: SQLiteError.self) { try pool.read { try $0.run("INSERT INTO numbers VALUES (1)") } }
        #expect(try pool.read(count) == 0)
    }

    @Test func threadsReadAndWriteAtTheSameTime() async throws {
        let pool = try pool()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for task in 0..<8 {
                group.addTask {
                    for number in 0..<50 {
                        if task % 2 == 0 {
                            try pool.write { try $0.run("INSERT INTO numbers VALUES (?)", [number]) }
                        } else {
                            // Two queries of one transaction agree.
                            let counts = try pool.read { [try count($0), try count($0)] }
                            #expect(counts[0] == counts[1])
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(try pool.read(count) == 200)
    }

    @Test func everyConnectionIsSetUp() throws {
        let connections = Mutex(0)
        let pool = try SQLitePool(path: path) { connection in
            connections.withLock { $0 += 1 }
            try connection.execute("PRAGMA cache_size = -123")
        }
        for _ in 0..<3 {
            let size = try pool.read { outer in
                try pool.read { inner in
                    [outer, inner].map { try? $0.first("PRAGMA cache_size") { try $0.value(0) as Int64 } }
                }
            }
            #expect(size == [-123, -123])
        }
        #expect(connections.withLock { $0 } == 3)
    }

    @Test func theLastConnectionRemovesTheLog() throws {
        do {
            let pool = try pool()
            try pool.write { try $0.run("INSERT INTO numbers VALUES (1)") }
            #expect(try pool.read(count) == 1)
            #expect(directory.names().contains("test.sqlite-wal"))
        }
        #expect(directory.names() == ["test.sqlite"])
        #expect(try pool().read(count) == 1)
    }

    @Test func aCheckpointEmptiesTheLog() throws {
        let pool = try pool()
        try pool.write { try $0.run("INSERT INTO numbers VALUES (1)") }
        let log = URL(filePath: directory.path("test.sqlite-wal"))
        #expect(try !Data(contentsOf: log).isEmpty)
        try pool.checkpoint(emptyingLog: true)
        #expect(try Data(contentsOf: log).isEmpty)
    }
}
