internal import Glibc
internal import Synchronization
internal import SystemIO

/// The server's only database: an SQLite file with a write-ahead log. Each owner has its own tables.
///
/// Only one transaction changes tables at a time; any number of threads may read concurrently. Any thread. Every call may
/// block: not for I/O threads.
package final class Ledger: Sendable {
    package static let fileName = "ledger.sqlite"
    /// The name of a damaged database that was put aside.
    static let damagedFileName = "ledger.damaged"

    /// The tables of one owner.
    package struct Tables: Sendable {
        /// Copies rows from a damaged database into a new one.
        package typealias Salvage = @Sendable (_ damaged: SQLiteConnection, _ new: SQLiteConnection) throws -> Void

        fileprivate let owner: String
        fileprivate let firstVersion: Int
        fileprivate let steps: [String]
        fileprivate let salvage: Salvage?

        /// - Parameters:
        ///   - owner: The owner's unique name.
        ///   - firstVersion: The version that the first step creates. Tables of earlier versions are not read.
        ///   - steps: The statements that create the tables, followed by those that migrate them from each version to the next.
        ///     A released step never changes.
        ///   - salvage: Called after a damaged database was replaced. It must check the values that it copies. Rows copied
        ///     before an error stay.
        package init(owner: String, firstVersion: Int = 1, steps: [String], salvage: Salvage? = nil) {
            self.owner = owner
            self.firstVersion = firstVersion
            self.steps = steps
            self.salvage = salvage
        }
    }

    package typealias Change = @Sendable (SQLiteConnection) throws -> Void

    /// When the changes of a transaction survive a power loss.
    package enum Durability: Sendable {
        /// When the transaction returns, together with all earlier transactions.
        case full
        /// After a later full transaction or ``Ledger/sync()``.
        case normal
    }

    private struct Connections {
        let writer: SQLiteConnection
        var durability = Durability.normal
        /// Whether a transaction was committed since the last one with full durability.
        var isUnsynced = false
        /// Whether a failed call may have left a gap in the log, at which recovery would stop. The log must then be
        /// checkpointed and truncated before a transaction is durable.
        var mayHaveGap = false
    }

    /// Transactions hold this lock shared. Closing or replacing the database holds it exclusively.
    private nonisolated(unsafe) let closing = UnsafeMutablePointer<pthread_rwlock_t>.allocate(capacity: 1)
    private let path: String
    private let owners: [Tables]
    /// Nil while the database is closed.
    private let connections: Mutex<Connections?>
    /// The random identity of the open database, which readers learn without waiting for a transaction; 0 while it is closed.
    private let identity: Atomic<Int64>
    private let idleReaders = Mutex<[SQLiteConnection]>([])
    private let isClosed = Atomic(false)
    private let replacedCount = Atomic(0)
    /// Why the existing database was put aside at startup; nil if it was usable or missing.
    package let replacedBecause: String?

    /// Opens the database, creates it if it is missing, and migrates its tables. A damaged database is put aside.
    ///
    /// - Parameter directory: The path of an existing directory, which no other process uses.
    package init(directory: String, owners: [Tables]) throws(LedgerError) {
        path = "\(directory)/\(Self.fileName)"
        self.owners = owners
        // Older versions kept the index of the log in this file.
        unlink(path + "-shm")
        var replacedBecause: String?
        var opened: (connections: Connections, identity: Int64)
        do throws(LedgerError) {
            opened = try Self.open(path, owners)
        } catch {
            guard error.kind == .damage else { throw error }
            replacedBecause = error.description
            try Self.putAside(path)
            opened = try Self.open(path, owners)
            Self.salvage(into: opened.connections.writer, path, owners)
        }
        self.replacedBecause = replacedBecause
        connections = Mutex(opened.connections)
        identity = Atomic(opened.identity)
        pthread_rwlock_init(closing, nil)
    }

    deinit {
        pthread_rwlock_destroy(closing)
        closing.deallocate()
    }

    // MARK: Transactions

    /// Calls `body` with a read-only connection that sees a consistent snapshot of the tables.
    package func read<Result>(_ body: (SQLiteConnection) throws -> Result) throws(LedgerError) -> Result {
        try whileOpen {
            let reader = try idleReaders.withLock { $0.popLast() } ?? openReader()
            let result = try reader.transaction(isChange: false, body)
            // After an error, a new one is used: a file keeps the code of its latest failed read.
            idleReaders.withLock { $0.append(reader) }
            return result
        }
    }

    /// Calls `body` in a transaction, which is rolled back if `body` throws.
    package func write<Result>(
        _ durability: Durability, _ body: (SQLiteConnection) throws -> Result
    ) throws(LedgerError) -> Result {
        // Results stay on this thread, so their isolation region does not matter.
        try whileOpen {
            try connections.withLock { connections in
                UncheckedResult(value: try Self.write(&connections, durability, body))
            }
        }.value
    }

    /// Makes all transactions durable.
    package func sync() throws(LedgerError) {
        guard connections.withLock({ $0?.isUnsynced ?? false }) else { return }
        try write(.full) { try $0.run("UPDATE ledger SET syncs = syncs + 1") }
    }

    private static func write<Result>(
        _ connections: inout Connections?, _ durability: Durability, _ body: (SQLiteConnection) throws -> Result
    ) throws -> Result {
        guard let writer = connections?.writer else { throw LedgerError(.closed, "the ledger is closed") }
        do {
            if durability == .full, connections?.mayHaveGap == true {
                try writer.checkpoint(emptyingLog: true)
                connections?.mayHaveGap = false
            }
            if connections?.durability != durability {
                try writer.execute("PRAGMA synchronous = \(durability == .full ? "FULL" : "NORMAL")")
                connections?.durability = durability
            }
            let result = try writer.transaction(isChange: true, body)
            connections?.isUnsynced = durability == .normal
            if writer.logPages >= Self.longLog, (try? writer.checkpoint(emptyingLog: false)) == nil {
                connections?.mayHaveGap = true
            }
            return result
        } catch {
            if (error as? LedgerError)?.isFailedCall == true { connections?.mayHaveGap = true }
            throw error
        }
    }

    /// The length of the log, in pages, at which it is checkpointed.
    private static var longLog: Int { 1000 }

    private func whileOpen<Result>(_ body: () throws -> Result) throws(LedgerError) -> Result {
        pthread_rwlock_rdlock(closing)
        defer { pthread_rwlock_unlock(closing) }
        guard !isClosed.load(ordering: .relaxed) else { throw LedgerError(.closed, "the ledger is closed") }
        do {
            return try body()
        } catch {
            throw LedgerError(error)
        }
    }

    /// Whether the path still leads to the database, if one is open. Otherwise the next start would not find what is written now.
    var isInPlace: Bool {
        pthread_rwlock_rdlock(closing)
        defer { pthread_rwlock_unlock(closing) }
        return connections.withLock { connections in
            // A damaged database has left its path before the next one can be opened.
            guard let writer = connections?.writer else { return true }
            var status = stat()
            // Other errors, such as those of a disk that does not answer, may pass.
            guard stat(path, &status) == 0 else { return errno != ENOENT }
            return !writer.hasMoved
        }
    }

    // MARK: Opening and closing

    /// Waits for running transactions, and closes the database. Later calls fail.
    package func close() {
        pthread_rwlock_wrlock(closing)
        defer { pthread_rwlock_unlock(closing) }
        isClosed.store(true, ordering: .relaxed)
        disconnect(emptyingLog: true)
    }

    /// The number of times the database was replaced since startup. A damage error from before the latest replacement says
    /// nothing about the current database.
    package var replacements: Int { replacedCount.load(ordering: .acquiring) }

    /// Puts the damaged database aside and creates a new one.
    package func replaceDamaged() throws(LedgerError) {
        pthread_rwlock_wrlock(closing)
        defer { pthread_rwlock_unlock(closing) }
        guard !isClosed.load(ordering: .relaxed) else { return }
        disconnect(emptyingLog: false)
        // An earlier attempt may have put it aside already.
        if Files.exists(path) { try Self.putAside(path) }
        let new = try Self.open(path, owners)
        Self.salvage(into: new.connections.writer, path, owners)
        connections.withLock { $0 = new.connections }
        identity.store(new.identity, ordering: .relaxed)
        replacedCount.add(1, ordering: .releasing)
    }

    private func disconnect(emptyingLog: Bool) {
        identity.store(0, ordering: .relaxed)
        idleReaders.withLock { $0.removeAll() }
        connections.withLock { connections in
            if emptyingLog { try? connections?.writer.checkpoint(emptyingLog: true) }
            connections = nil
        }
    }

    private static func open(
        _ path: String, _ owners: [Tables]
    ) throws(LedgerError) -> (connections: Connections, identity: Int64) {
        do {
            let writer = try SQLiteConnection(path: path, creating: true)
            try writer.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")
            try setUp(writer)
            let identity = try writer.transaction(isChange: true) { connection in
                try migrate(connection, owners)
                return try readIdentity(connection)
            }
            return (Connections(writer: writer, durability: .full), identity)
        } catch {
            throw LedgerError(error)
        }
    }

    private static func setUp(_ connection: SQLiteConnection) throws {
        try connection.keepLog()
        try connection.execute(
            "PRAGMA journal_size_limit = \(16 << 20); PRAGMA cache_size = -8192; PRAGMA temp_store = MEMORY")
    }

    private func openReader() throws -> SQLiteConnection {
        let identity = identity.load(ordering: .relaxed)
        guard identity != 0 else { throw LedgerError(.closed, "the ledger is closed") }
        let reader = try SQLiteConnection(path: path, creating: false)
        try Self.setUp(reader)
        try reader.execute("PRAGMA query_only = 1")
        // The file at the path may have been replaced meanwhile.
        guard try Self.readIdentity(reader) == identity else { throw LedgerError(.failure, "the database was replaced") }
        return reader
    }

    private static func readIdentity(_ connection: SQLiteConnection) throws -> Int64 {
        try connection.first("SELECT identity FROM ledger") { try $0.value(0) } ?? 0
    }

    private static func migrate(_ connection: SQLiteConnection, _ owners: [Tables]) throws {
        try connection.execute(
            """
            CREATE TABLE IF NOT EXISTS ledger (identity INTEGER NOT NULL, syncs INTEGER NOT NULL);
            INSERT INTO ledger SELECT random(), 0 WHERE NOT EXISTS (SELECT 1 FROM ledger);
            CREATE TABLE IF NOT EXISTS owners (owner TEXT PRIMARY KEY, version INTEGER NOT NULL) WITHOUT ROWID;
            """)
        for tables in owners {
            let version = try connection.first("SELECT version FROM owners WHERE owner = ?", [tables.owner]) {
                try $0.value(0) as Int
            }
            let versions = tables.firstVersion..<tables.firstVersion + tables.steps.count
            if let version, !versions.contains(version) {
                throw LedgerError(.damage, "the tables of \(tables.owner) have the unknown version \(version)")
            }
            // A new database needs all steps.
            let done = version.map { $0 - tables.firstVersion + 1 } ?? 0
            guard done < tables.steps.count else { continue }
            for step in tables.steps.dropFirst(done) { try connection.execute(step) }
            try connection.run("INSERT OR REPLACE INTO owners VALUES (?, ?)", [tables.owner, versions.upperBound - 1])
        }
    }

    /// Copies the rows that can still be read from the database that was put aside.
    private static func salvage(into new: SQLiteConnection, _ path: String, _ owners: [Tables]) {
        let aside = "\(Files.directory(of: path))/\(damagedFileName)"
        guard let damaged = try? SQLiteConnection(path: aside, creating: false),
            (try? damaged.keepLog()) != nil, (try? damaged.execute("PRAGMA query_only = 1")) != nil
        else { return }
        for salvage in owners.compactMap(\.salvage) {
            try? new.transaction(isChange: true) { new in try? salvage(damaged, new) }
        }
    }

    private static func putAside(_ path: String) throws(LedgerError) {
        let directory = Files.directory(of: path)
        for suffix in ["-wal", ""] {
            let aside = "\(directory)/\(damagedFileName)\(suffix)"
            guard renameat(AT_FDCWD, path + suffix, AT_FDCWD, aside) == 0 || errno == ENOENT else {
                throw LedgerError(.failure, SystemError.last("rename(\(path + suffix))").description)
            }
        }
    }
}

private struct UncheckedResult<Value>: @unchecked Sendable {
    let value: Value
}
