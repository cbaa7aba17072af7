internal import CSystem

/// A connection to a database file through the system's SQLite.
///
/// One thread may use it at a time. Every call may block: not for I/O threads.
package final class SQLiteConnection: @unchecked Sendable {
    private let handle: OpaquePointer
    /// Prepared statements by their SQL text. The program contains all texts, so there are few.
    private var statements: [String: SQLiteStatement] = [:]
    private let pagesOfLog = UnsafeMutablePointer<Int32>.allocate(capacity: 1)

    /// How long a call waits for a lock of another connection.
    private static let busyMilliseconds: Int32 = 5000

    /// Locks the database for this process, whose connections keep the index of the log in their memory. SQLite would otherwise
    /// map a file for it, and a write to a mapped file on a full disk ends the process on file systems that copy on write.
    private static let fileSystem = "unix-excl"

    /// Opens a database, which no other process may have open.
    ///
    /// - Parameter creating: Whether to create an empty database if the file is missing.
    package init(path: String, creating: Bool = true) throws(LedgerError) {
        var handle: OpaquePointer?
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | (creating ? SQLITE_OPEN_CREATE : 0)
        let code = sqlite3_open_v2(path, &handle, flags, Self.fileSystem)
        guard code == SQLITE_OK, let handle else {
            defer { sqlite3_close(handle) }
            throw LedgerError(code, handle)
        }
        self.handle = handle
        sqlite3_busy_timeout(handle, Self.busyMilliseconds)
        pagesOfLog.initialize(to: 0)
        // Replaces SQLite's automatic checkpoints, whose errors SQLite drops.
        let count: @convention(c) (UnsafeMutableRawPointer?, OpaquePointer?, UnsafePointer<CChar>?, Int32) -> Int32 = {
            context, _, _, pages in
            context?.storeBytes(of: pages, as: Int32.self)
            return SQLITE_OK
        }
        sqlite3_wal_hook(handle, count, pagesOfLog)
    }

    deinit {
        for statement in statements.values { sqlite3_finalize(statement.handle) }
        sqlite3_close(handle)
        pagesOfLog.deallocate()
    }

    /// Runs statements without parameters, separated by semicolons, and ignores their rows.
    package func execute(_ sql: String) throws(LedgerError) {
        let code = sqlite3_exec(handle, sql, nil, nil, nil)
        guard code == SQLITE_OK else { throw LedgerError(code, handle) }
    }

    /// Runs one statement, and ignores its rows.
    ///
    /// - Parameters:
    ///   - sql: The statement. It is compiled once and kept, so its text must not contain values.
    ///   - values: The values of its parameters, in order.
    package func run(_ sql: String, _ values: [any SQLiteValue] = []) throws {
        try forEach(sql, values) { _ in }
    }

    /// Calls `body` with each row of one statement, which must not be run again within it; see ``run(_:_:)``.
    package func forEach(_ sql: String, _ values: [any SQLiteValue] = [], _ body: (SQLiteRow) throws -> Void) throws {
        let statement = try statement(sql)
        defer { statement.reset() }
        try statement.bind(values)
        while let row = try statement.step() { try body(row) }
    }

    /// The result of `body` for the first row; nil if there are no rows. See ``run(_:_:)``.
    package func first<Result>(
        _ sql: String, _ values: [any SQLiteValue] = [], _ body: (SQLiteRow) throws -> Result
    ) throws -> Result? {
        let statement = try statement(sql)
        defer { statement.reset() }
        try statement.bind(values)
        return try statement.step().map(body)
    }

    /// The results of `body` for all rows; see ``run(_:_:)``.
    package func all<Result>(
        _ sql: String, _ values: [any SQLiteValue] = [], _ body: (SQLiteRow) throws -> Result
    ) throws -> [Result] {
        var results: [Result] = []
        try forEach(sql, values) { results.append(try body($0)) }
        return results
    }

    /// The number of rows that the latest INSERT, UPDATE or DELETE changed.
    package var changedRows: Int64 { sqlite3_changes64(handle) }

    /// Calls `body` in a transaction, which is rolled back if `body` throws.
    ///
    /// - Parameter isChange: Whether the transaction changes tables; only one such transaction runs at a time. A read-only
    ///   transaction sees a consistent snapshot of the tables.
    package func transaction<Result>(isChange: Bool, _ body: (SQLiteConnection) throws -> Result) throws -> Result {
        try run(isChange ? "BEGIN IMMEDIATE" : "BEGIN")
        do {
            let result = try body(self)
            try run("COMMIT")
            return result
        } catch {
            // Some errors already rolled the transaction back.
            if sqlite3_get_autocommit(handle) == 0 { try? run("ROLLBACK") }
            throw error
        }
    }

    /// The pages of the write-ahead log after the latest transaction that changed tables.
    var logPages: Int { Int(pagesOfLog.pointee) }

    /// Copies the write-ahead log into the database file, and waits until that is durable.
    ///
    /// - Parameter emptyingLog: Whether to wait for readers and truncate the log. Otherwise copies as much as active readers
    ///   allow.
    func checkpoint(emptyingLog: Bool) throws(LedgerError) {
        let mode = emptyingLog ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE
        let code = sqlite3_wal_checkpoint_v2(handle, nil, mode, nil, nil)
        guard code == SQLITE_OK else { throw LedgerError(code, handle) }
        pagesOfLog.pointee = 0
    }

    /// Keeps the write-ahead log file when the last connection closes. SQLite would remove it by path, which may belong to
    /// another database by then.
    func keepLog() throws(LedgerError) {
        var keeps: Int32 = 1
        let code = sqlite3_file_control(handle, "main", SQLITE_FCNTL_PERSIST_WAL, &keeps)
        guard code == SQLITE_OK else { throw LedgerError(code, handle) }
    }

    /// Whether the path no longer leads to the open file, or cannot be followed.
    var hasMoved: Bool {
        var result: Int32 = 0
        return sqlite3_file_control(handle, "main", SQLITE_FCNTL_HAS_MOVED, &result) == SQLITE_OK && result != 0
    }

    private func statement(_ sql: String) throws(LedgerError) -> SQLiteStatement {
        if let statement = statements[sql] { return statement }
        let statement = try SQLiteStatement(sql, handle)
        statements[sql] = statement
        return statement
    }
}
