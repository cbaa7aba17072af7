internal import GRDB
internal import Glibc

/// The SQLite database of the ``Index``: its schema, its connections, and their end.
///
/// SQLite's WAL with `synchronous=NORMAL` never syncs at a commit: the index needs no durability of its own, because the journal
/// has it. Any number of threads may query while one changes. Every call may block: not for I/O threads.
final class IndexDatabase: Sendable {
    /// Changes with the tables below. An index with another value is rebuilt.
    private static let schemaVersion = 2

    private let pool: DatabasePool
    /// Queries hold it shared, ``close()`` holds it exclusively.
    private nonisolated(unsafe) let closing = UnsafeMutablePointer<pthread_rwlock_t>.allocate(capacity: 1)
    /// Guarded by `closing`.
    private nonisolated(unsafe) var isClosed = false

    /// Opens the database, and creates the tables if it is empty.
    ///
    /// - Parameters:
    ///   - path: The database file.
    ///   - readers: The number of threads that query at the same time.
    init(path: String, readers: Int) throws(IndexError) {
        var configuration = Configuration()
        configuration.maximumReaderCount = readers + 2
        configuration.busyMode = .timeout(5)
        configuration.label = "gifreel-cache"
        configuration.foreignKeysEnabled = false
        configuration.prepareDatabase { database in
            try database.execute(
                sql: """
                    PRAGMA synchronous = NORMAL;
                    PRAGMA journal_size_limit = \(16 << 20);
                    PRAGMA cache_size = -8192;
                    """)
        }
        pthread_rwlock_init(closing, nil)
        do {
            pool = try DatabasePool(path: path, configuration: configuration)
            let version = try pool.write { database in
                let isEmpty = try Int.fetchOne(database, sql: "SELECT COUNT(*) FROM sqlite_schema") == 0
                if isEmpty { try Self.createTables(in: database) }
                return try Int.fetchOne(database, sql: "PRAGMA user_version")
            }
            guard version == Self.schemaVersion else {
                try pool.close()
                throw IndexError(broken: "its schema has version \(version ?? 0) instead of \(Self.schemaVersion)")
            }
        } catch {
            throw IndexError(error)
        }
    }

    deinit {
        pthread_rwlock_destroy(closing)
        closing.deallocate()
    }

    /// Calls `body` with a connection that sees one state of the tables.
    func query<Result>(_ body: (Database) throws -> Result) throws(IndexError) -> Result {
        try whileOpen { try pool.read(body) }
    }

    /// Calls `body` in a transaction, which is rolled back if `body` throws.
    func change<Result>(_ body: (Database) throws -> Result) throws(IndexError) -> Result {
        try whileOpen { try pool.write(body) }
    }

    /// Makes all changes durable.
    ///
    /// - Parameter emptyingLog: Whether SQLite's log is emptied, too, so that the database is one file again.
    func checkpoint(emptyingLog: Bool) throws(IndexError) {
        try whileOpen { try pool.writeWithoutTransaction { _ = try $0.checkpoint(emptyingLog ? .truncate : .full) } }
    }

    /// Waits for running queries and closes all connections. Later queries fail.
    func close() throws(IndexError) {
        pthread_rwlock_wrlock(closing)
        defer { pthread_rwlock_unlock(closing) }
        isClosed = true
        do {
            try pool.close()
        } catch {
            throw IndexError(error)
        }
    }

    /// Calls `body` unless the database is closed. A pool must not be closed during a query.
    private func whileOpen<Result>(_ body: () throws -> Result) throws(IndexError) -> Result {
        pthread_rwlock_rdlock(closing)
        defer { pthread_rwlock_unlock(closing) }
        guard !isClosed else { throw IndexError(broken: "it is closed") }
        do {
            return try body()
        } catch {
            throw IndexError(error)
        }
    }

    private static func createTables(in database: Database) throws {
        try database.execute(
            sql: """
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
                """)
    }
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
        guard let error = error as? DatabaseError else {
            isBroken = false
            return
        }
        let broken: [ResultCode] = [.SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_ERROR, .SQLITE_FORMAT, .SQLITE_SCHEMA]
        isBroken = broken.contains(error.resultCode.primaryResultCode)
    }

    init(broken description: String) {
        self.description = description
        isBroken = true
    }
}
