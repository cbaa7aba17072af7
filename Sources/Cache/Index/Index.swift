internal import GRDB
internal import Glibc

/// The SQLite index: what the journal says, to look things up in.
///
/// Follows the journal line by line and remembers up to where in the same transaction, so that after a crash the rest is
/// applied again; each line may be applied twice. It needs no durability of its own: SQLite's WAL with `synchronous=NORMAL`
/// never syncs at a commit. Reads may go on in several threads beside one write. Every call may block: not for I/O threads.
final class Index: Sendable {
    static let fileName = "index.sqlite"
    /// Changes with the tables below; another version's index is made anew.
    private static let layout = 2

    let pool: DatabasePool
    /// Queries hold it shared, closing holds it alone.
    private nonisolated(unsafe) let closing = UnsafeMutablePointer<pthread_rwlock_t>.allocate(capacity: 1)
    /// Guarded by `closing`.
    private nonisolated(unsafe) var isClosed = false

    /// Opens the index or makes a new one.
    ///
    /// - Parameters:
    ///   - path: The database file.
    ///   - readers: Threads that will read at once.
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
            let layout = try pool.write { database in
                if try Int.fetchOne(database, sql: "SELECT COUNT(*) FROM sqlite_schema") == 0 { try Self.makeTables(database) }
                return try Int.fetchOne(database, sql: "PRAGMA user_version")
            }
            guard layout == Self.layout else {
                try pool.close()
                throw IndexError(broken: "layout \(layout ?? 0) instead of \(Self.layout)")
            }
        } catch {
            throw IndexError(error)
        }
    }

    deinit {
        pthread_rwlock_destroy(closing)
        closing.deallocate()
    }

    private static func makeTables(_ database: Database) throws {
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

                -- Where an object came from whose alias leads to another one now: a purge of that source is to find it.
                CREATE TABLE former_aliases (
                    object BLOB NOT NULL, url TEXT NOT NULL, sequence INTEGER NOT NULL, PRIMARY KEY (object, url)
                ) WITHOUT ROWID;
                CREATE INDEX former_aliases_by_url ON former_aliases (url);
                CREATE TRIGGER former_aliases_removed AFTER DELETE ON objects BEGIN
                    DELETE FROM former_aliases WHERE object = OLD.id;
                END;

                PRAGMA user_version = \(layout);
                """)
    }

    /// Waits for queries under way and ends all connections. Later queries fail.
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

    func read<Result>(_ body: (Database) throws -> Result) throws(IndexError) -> Result {
        try whileOpen { try pool.read(body) }
    }

    func write<Result>(_ body: (Database) throws -> Result) throws(IndexError) -> Result {
        try whileOpen { try pool.write(body) }
    }

    /// Calls `body` unless the index is closed, which waits for its end. A pool must not be closed during a query.
    func whileOpen<Result>(_ body: () throws -> Result) throws(IndexError) -> Result {
        pthread_rwlock_rdlock(closing)
        defer { pthread_rwlock_unlock(closing) }
        guard !isClosed else { throw IndexError(broken: "it is closed") }
        do {
            return try body()
        } catch {
            throw IndexError(error)
        }
    }
}
