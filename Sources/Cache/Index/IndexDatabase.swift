internal import Glibc
internal import SQLite

/// The SQLite database of the ``Index``: its schema, its connections, and their end.
///
/// SQLite's WAL with `synchronous=NORMAL` never syncs at a commit: the index needs no durability of its own, because the journal
/// has it. Any number of threads may query while one changes. Every call may block: not for I/O threads.
final class IndexDatabase: Sendable {
    /// Changes with the tables below. An index with another value is rebuilt.
    private static let schemaVersion: Int64 = 2

    /// Queries hold it shared, ``close()`` holds it exclusively.
    private nonisolated(unsafe) let closing = UnsafeMutablePointer<pthread_rwlock_t>.allocate(capacity: 1)
    /// Nil after the end. Guarded by `closing`.
    private nonisolated(unsafe) var pool: SQLitePool?

    /// Opens the database, and creates the tables if it is empty.
    ///
    /// - Parameter path: The database file.
    init(path: String) throws(IndexError) {
        pthread_rwlock_init(closing, nil)
        do {
            let pool = try SQLitePool(path: path) { connection in
                try connection.execute(
                    """
                    PRAGMA synchronous = NORMAL;
                    PRAGMA journal_size_limit = \(16 << 20);
                    PRAGMA cache_size = -8192;
                    """)
            }
            let version = try pool.write { connection in
                let isEmpty = try connection.first("SELECT COUNT(*) FROM sqlite_schema") { try $0.value(0) as Int64 } == 0
                if isEmpty { try connection.execute(Self.tables) }
                return try connection.first("PRAGMA user_version") { try $0.value(0) as Int64 } ?? 0
            }
            guard version == Self.schemaVersion else {
                throw IndexError(broken: "its schema has version \(version) instead of \(Self.schemaVersion)")
            }
            self.pool = pool
        } catch {
            throw IndexError(error)
        }
    }

    deinit {
        pthread_rwlock_destroy(closing)
        closing.deallocate()
    }

    /// Calls `body` with a connection that sees one state of the tables.
    func query<Result>(_ body: (SQLiteConnection) throws -> Result) throws(IndexError) -> Result {
        try whileOpen { try $0.read(body) }
    }

    /// Calls `body` in a transaction, which is rolled back if `body` throws.
    func change<Result>(_ body: (SQLiteConnection) throws -> Result) throws(IndexError) -> Result {
        try whileOpen { try $0.write(body) }
    }

    /// Makes all changes durable.
    ///
    /// - Parameter emptyingLog: Whether SQLite's log is emptied, too, so that the database is one file again.
    func checkpoint(emptyingLog: Bool) throws(IndexError) {
        try whileOpen { try $0.checkpoint(emptyingLog: emptyingLog) }
    }

    /// Waits for running queries and closes all connections. Later queries fail.
    func close() {
        pthread_rwlock_wrlock(closing)
        defer { pthread_rwlock_unlock(closing) }
        pool = nil
    }

    /// Calls `body` unless the database is closed.
    private func whileOpen<Result>(_ body: (SQLitePool) throws -> Result) throws(IndexError) -> Result {
        pthread_rwlock_rdlock(closing)
        defer { pthread_rwlock_unlock(closing) }
        guard let pool else { throw IndexError(broken: "it is closed") }
        do {
            return try body(pool)
        } catch {
            throw IndexError(error)
        }
    }

    private static let tables = """
        CREATE TABLE state (
            only INTEGER PRIMARY KEY CHECK (only = 1),
            journal TEXT NOT NULL, applied INTEGER NOT NULL,
            hand INTEGER NOT NULL, clean INTEGER NOT NULL,
            objects INTEGER NOT NULL, bytes INTEGER NOT NULL
        );
        INSERT INTO state VALUES (1, '', 0, 0, 0, 0, 0);

        CREATE TABLE objects (
            sequence INTEGER PRIMARY KEY,
            id BLOB NOT NULL UNIQUE, extension TEXT NOT NULL, length INTEGER NOT NULL,
            content BLOB NOT NULL, created INTEGER NOT NULL, facts BLOB NOT NULL,
            -- The sequence of its latest upload; 0 if it was never uploaded.
            uploaded INTEGER NOT NULL
        );
        CREATE TRIGGER object_added AFTER INSERT ON objects BEGIN
            UPDATE state SET objects = objects + 1, bytes = bytes + NEW.length;
        END;
        CREATE TRIGGER object_removed AFTER DELETE ON objects BEGIN
            UPDATE state SET objects = objects - 1, bytes = bytes - OLD.length;
        END;

        CREATE TABLE aliases (
            key BLOB PRIMARY KEY, sequence INTEGER NOT NULL, object BLOB NOT NULL, url TEXT NOT NULL,
            etag TEXT, modified TEXT, fetched INTEGER NOT NULL, fresh INTEGER
        ) WITHOUT ROWID;
        CREATE INDEX aliases_by_url ON aliases (url);
        CREATE INDEX aliases_by_object ON aliases (object);

        -- The sources of objects whose aliases now lead to other objects, so that a purge of a source covers these, too.
        CREATE TABLE former_aliases (
            object BLOB NOT NULL, url TEXT NOT NULL, sequence INTEGER NOT NULL, PRIMARY KEY (object, url)
        ) WITHOUT ROWID;
        CREATE INDEX former_aliases_by_url ON former_aliases (url);
        CREATE TRIGGER former_aliases_removed AFTER DELETE ON objects BEGIN
            DELETE FROM former_aliases WHERE object = OLD.id;
        END;

        PRAGMA user_version = \(schemaVersion);
        """
}

/// An error of the index: the message of SQLite, and whether the file itself is unusable.
struct IndexError: Error, CustomStringConvertible {
    let description: String
    /// Whether the file is not a database, is damaged or has another schema, so that it has to be rebuilt.
    let isBroken: Bool

    init(_ error: any Error) {
        if let error = error as? IndexError {
            self = error
            return
        }
        description = "\(error)"
        isBroken = (error as? SQLiteError)?.isCorruption ?? false
    }

    init(broken description: String) {
        self.description = description
        isBroken = true
    }
}
