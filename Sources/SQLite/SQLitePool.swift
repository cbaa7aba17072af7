internal import Synchronization

/// Connections to one database with a write-ahead log: one that changes it, and one for each thread that reads at the same time.
///
/// Any thread. Every call may block: not for I/O threads.
package final class SQLitePool: Sendable {
    private let path: String
    private let setUp: @Sendable (SQLiteConnection) throws -> Void
    private let writer: Mutex<SQLiteConnection>
    private let idleReaders = Mutex<[SQLiteConnection]>([])

    /// Opens a database, and creates an empty one if the file is missing.
    ///
    /// - Parameter setUp: Called with each new connection.
    package init(path: String, setUp: @escaping @Sendable (SQLiteConnection) throws -> Void) throws {
        self.path = path
        self.setUp = setUp
        let connection = try SQLiteConnection(path: path)
        try connection.execute("PRAGMA journal_mode = WAL")
        try setUp(connection)
        writer = Mutex(connection)
    }

    deinit {
        // The last connection that is closed removes the log, which one that only reads cannot do.
        idleReaders.withLock { $0.removeAll() }
    }

    /// Calls `body` with a connection that sees one state of the tables and cannot change them.
    package func read<Result>(_ body: (SQLiteConnection) throws -> Result) throws -> Result {
        let reader = try idleReaders.withLock { $0.popLast() } ?? openReader()
        defer { idleReaders.withLock { $0.append(reader) } }
        return try reader.transaction(isChange: false, body)
    }

    /// Calls `body` in a transaction, which is rolled back if `body` throws.
    package func write<Result>(_ body: (SQLiteConnection) throws -> Result) throws -> Result {
        // Results stay in this thread, so the region that they belong to does not matter.
        let result = try writer.withLock { connection in
            UncheckedResult(value: try connection.transaction(isChange: true, body))
        }
        return result.value
    }

    /// Makes all changes durable; see ``SQLiteConnection/checkpoint(emptyingLog:)``.
    package func checkpoint(emptyingLog: Bool) throws {
        try writer.withLock { try $0.checkpoint(emptyingLog: emptyingLog) }
    }

    private func openReader() throws -> SQLiteConnection {
        let connection = try SQLiteConnection(path: path)
        try setUp(connection)
        try connection.execute("PRAGMA query_only = 1")
        return connection
    }
}

private struct UncheckedResult<Value>: @unchecked Sendable {
    let value: Value
}
