internal import Ledger

/// The cache's tables in the ledger, and the statements on them, for use within one transaction.
///
/// Rows have sequences: each object and alias a greater one than all before it, even after removals. A purge of everything only
/// records the latest sequence, and other purges note the objects that they cover. These rows do not exist for a query, and a
/// sweep removes them later together with the files.
struct CacheTables {
    static let owned = Ledger.Tables(
        owner: "cache",
        steps: [
            """
            CREATE TABLE cache_state (
                only INTEGER PRIMARY KEY CHECK (only = 1),
                -- The latest sequence, that of the latest purge of everything, and that before which aliases have to be revalidated.
                sequence INTEGER NOT NULL, emptied INTEGER NOT NULL, revalidated INTEGER NOT NULL,
                -- Where the eviction hand stopped, and whether every file has a row.
                hand INTEGER NOT NULL, clean INTEGER NOT NULL,
                objects INTEGER NOT NULL, bytes INTEGER NOT NULL, object_space INTEGER NOT NULL,
                aliases INTEGER NOT NULL, alias_space INTEGER NOT NULL
            );
            INSERT INTO cache_state VALUES (1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);

            CREATE TABLE objects (
                sequence INTEGER PRIMARY KEY,
                id BLOB NOT NULL UNIQUE, extension TEXT NOT NULL, length INTEGER NOT NULL, content BLOB NOT NULL,
                created INTEGER NOT NULL, facts BLOB NOT NULL, uploaded INTEGER NOT NULL, space INTEGER NOT NULL
            );
            CREATE TABLE aliases (
                sequence INTEGER PRIMARY KEY,
                -- Null if the alias leads to another object now. A purge of its source covers the former object, too.
                key BLOB UNIQUE, former INTEGER NOT NULL,
                object INTEGER NOT NULL, url TEXT NOT NULL,
                etag TEXT, modified TEXT, fetched INTEGER NOT NULL, fresh INTEGER, space INTEGER NOT NULL
            );
            CREATE INDEX aliases_by_url ON aliases (url);
            CREATE INDEX aliases_by_object ON aliases (object, former);
            -- Objects that are purged and whose files and rows are not removed yet, by their sequences.
            CREATE TABLE doomed (object INTEGER PRIMARY KEY, id BLOB NOT NULL, extension TEXT NOT NULL);

            CREATE TRIGGER object_added AFTER INSERT ON objects BEGIN
                UPDATE cache_state SET
                    objects = objects + 1, bytes = bytes + NEW.length, object_space = object_space + NEW.space;
            END;
            CREATE TRIGGER object_doomed AFTER INSERT ON doomed BEGIN
                UPDATE cache_state SET
                    objects = objects - 1,
                    bytes = bytes - (SELECT length FROM objects WHERE sequence = NEW.object),
                    object_space = object_space - (SELECT space FROM objects WHERE sequence = NEW.object),
                    aliases = aliases - (SELECT count(*) FROM aliases WHERE object = NEW.object AND former = 0),
                    alias_space = alias_space - (SELECT ifnull(sum(space), 0) FROM aliases WHERE object = NEW.object);
            END;
            CREATE TRIGGER object_removed AFTER DELETE ON objects BEGIN
                DELETE FROM aliases WHERE object = OLD.sequence;
                UPDATE cache_state SET
                    objects = objects - 1, bytes = bytes - OLD.length, object_space = object_space - OLD.space
                WHERE OLD.sequence > emptied AND OLD.sequence NOT IN (SELECT object FROM doomed);
            END;
            CREATE TRIGGER alias_added AFTER INSERT ON aliases BEGIN
                UPDATE cache_state SET aliases = aliases + 1, alias_space = alias_space + NEW.space;
            END;
            CREATE TRIGGER alias_replaced AFTER UPDATE OF former ON aliases BEGIN
                UPDATE cache_state SET aliases = aliases - 1;
            END;
            CREATE TRIGGER alias_removed AFTER DELETE ON aliases BEGIN
                UPDATE cache_state SET aliases = aliases - (OLD.former = 0), alias_space = alias_space - OLD.space
                WHERE OLD.object > emptied AND OLD.object NOT IN (SELECT object FROM doomed);
            END;
            """,
            // Prefixes whose purge has rows left to remove, and the latest sequence that it covers.
            "CREATE TABLE purging (prefix TEXT PRIMARY KEY, sequence INTEGER NOT NULL) WITHOUT ROWID;",
            // 1 if the origin forbids to use the alias once it is stale.
            "ALTER TABLE aliases ADD COLUMN strict INTEGER NOT NULL DEFAULT 0",
            // The latest sequence before which purges may have been missed.
            "ALTER TABLE cache_state ADD COLUMN unconfirmed INTEGER NOT NULL DEFAULT 0",
            // The canonical text of format and options.
            "ALTER TABLE aliases ADD COLUMN rendition TEXT NOT NULL DEFAULT ''",
        ])

    let database: SQLiteConnection

    init(_ database: SQLiteConnection) {
        self.database = database
    }

    // MARK: State

    func state() throws -> CacheState {
        let state = try database.first(
            """
            SELECT sequence, revalidated, hand, clean, objects, bytes, object_space, aliases, alias_space, emptied,
                unconfirmed
            FROM cache_state
            """
        ) { row in
            CacheState(
                sequence: try row.value(0), revalidated: try row.value(1), hand: try row.value(2), isClean: try row.value(3),
                totals: CacheTotals(
                    objects: try row.value(4), bytes: try row.value(5), objectSpace: try row.value(6),
                    aliases: try row.value(7), aliasSpace: try row.value(8)),
                emptied: try row.value(9), unconfirmed: try row.value(10))
        }
        guard let state, state.isInRange else { throw LedgerError(.damage, "the state of the cache is out of range") }
        return state
    }

    func setSequence(_ sequence: Int64) throws {
        try database.run("UPDATE cache_state SET sequence = ?", [sequence])
    }

    func setClean(_ isClean: Bool, hand: Int64) throws {
        try database.run("UPDATE cache_state SET clean = ?, hand = ?", [isClean, hand])
    }

    /// Records that aliases up to a sequence are doubted.
    func setDoubt(_ doubt: MissedPurges, through sequence: Int64) throws {
        let column =
            switch doubt {
            case .certain: "revalidated"
            case .possible: "unconfirmed"
            }
        try database.run("UPDATE cache_state SET \(column) = max(\(column), ?)", [sequence])
    }

    // MARK: Queries

    func aliasRow(_ key: AliasKey) throws -> AliasRow? {
        try database.first(
            """
            SELECT \(AliasRow.columns) FROM aliases JOIN objects ON objects.sequence = aliases.object
            WHERE aliases.key = ? AND \(Self.isLive)
            """, [key.bytes]
        ) { try AliasRow($0) }
    }

    /// Up to `limit` aliases of a source and their objects, the newest first.
    func aliases(of sourceURL: String, limit: Int) throws -> [AliasRow] {
        try database.all(
            """
            SELECT \(AliasRow.columns) FROM aliases JOIN objects ON objects.sequence = aliases.object
            WHERE aliases.url = ? AND aliases.former = 0 AND \(Self.isLive) ORDER BY aliases.sequence DESC LIMIT ?
            """, [sourceURL, limit]
        ) { try AliasRow($0) }
    }

    func objectRow(_ id: ObjectID) throws -> ObjectRow? {
        try database.first("SELECT \(ObjectRow.columns) FROM objects WHERE id = ? AND \(Self.isLive)", [id.bytes]) {
            try ObjectRow($0)
        }
    }

    /// Up to `limit` objects after `sequence`, in the order of the eviction queue.
    func objects(after sequence: Int64, limit: Int) throws -> [ObjectRow] {
        try database.all(
            """
            SELECT \(ObjectRow.columns) FROM objects
            WHERE sequence > max(?, (SELECT emptied FROM cache_state)) AND \(Self.isLive) ORDER BY sequence LIMIT ?
            """, [sequence, limit]
        ) { try ObjectRow($0) }
    }

    /// The file extensions of all objects whose ids begin with the byte `first`.
    func extensions(ofObjectsIn first: UInt8) throws -> [ObjectID: String] {
        let bounds = [[first] + Array(repeating: 0, count: 31), [first] + Array(repeating: 0xff, count: 31)]
        var extensions: [ObjectID: String] = [:]
        let sql = "SELECT id, extension FROM objects WHERE id >= ? AND id <= ? AND \(Self.isLive)"
        try database.forEach(sql, bounds) { row in
            let file = try FileName(row, from: 0)
            extensions[file.id] = file.fileExtension
        }
        return extensions
    }

    // MARK: Adding

    /// Adds an object. A row with its id must not have a file.
    func insert(_ record: ObjectRecord, _ sequence: Int64) throws {
        // One that is purged and not swept yet, or whose file is missing.
        try database.run("DELETE FROM objects WHERE id = ?", [record.id.bytes])
        try database.run(
            "INSERT INTO objects VALUES (?, ?, ?, ?, ?, ?, ?, 0, ?)",
            [
                sequence, record.id.bytes, record.fileExtension, record.length, record.content.bytes, record.created,
                record.facts, record.space,
            ])
    }

    /// Adds or replaces an alias.
    ///
    /// - Parameter object: The sequence of its object.
    func insert(_ record: AliasRecord, leadingTo object: Int64, _ sequence: Int64) throws {
        let key = record.key.bytes
        try database.run(
            """
            DELETE FROM aliases WHERE former = 1 AND (object, url) IN
                (SELECT object, url FROM aliases WHERE key = ? AND object <> ?)
            """, [key, object])
        try database.run(
            "UPDATE aliases SET key = NULL, former = 1 WHERE key = ? AND object <> ? AND \(Self.leadsToLive)", [key, object])
        try database.run("DELETE FROM aliases WHERE key = ?", [key])
        try database.run(
            "INSERT INTO aliases VALUES (?, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                sequence, key, object, record.sourceURL, record.validators.etag, record.validators.lastModified,
                record.fetchedAt, record.freshFor, record.space, record.mustRevalidate, record.rendition,
            ])
    }

    func markUploaded(_ object: Int64) throws {
        try database.run("UPDATE objects SET uploaded = 1 WHERE sequence = ?", [object])
    }

    // MARK: Removing

    /// Removes objects and the aliases that lead to them. Their files are removed already.
    func delete(_ objects: some Sequence<Int64>) throws {
        for sequence in objects { try database.run("DELETE FROM objects WHERE sequence = ?", [sequence]) }
    }

    /// Removes the unused ones among up to `limit` of the oldest aliases after a sequence, and objects that nothing leads to any
    /// longer. An alias that is requested is renewed from time to time and thereby becomes the newest.
    ///
    /// - Returns: The sequence of the last alias that was examined, nil if there was none, and the removed objects. Their files
    ///   follow with ``objectsToSweep(limit:)``.
    func deleteOldestAliases(
        after sequence: Int64, limit: Int, unless isInUse: (AliasKey) -> Bool
    ) throws -> (last: Int64?, objects: [ObjectRow]) {
        let rows = try database.all(
            """
            SELECT sequence, key, object FROM aliases
            WHERE sequence > ? AND \(Self.leadsToLive) ORDER BY sequence LIMIT ?
            """, [sequence, limit]
        ) { row in
            (sequence: try row.value(0) as Int64, key: try row.value(1) as [UInt8]?, object: try row.value(2) as Int64)
        }
        let unused = rows.filter { row in row.key.flatMap { AliasKey(bytes: $0) }.map { !isInUse($0) } ?? true }
        for row in unused { try database.run("DELETE FROM aliases WHERE sequence = ?", [row.sequence]) }
        let unreferenced = try Set(unused.map(\.object)).sorted().compactMap { object in
            try database.first(
                """
                SELECT \(ObjectRow.columns) FROM objects WHERE sequence = ? AND uploaded = 0
                    AND NOT EXISTS (SELECT 1 FROM aliases WHERE aliases.object = objects.sequence AND former = 0)
                """, [object]
            ) { try ObjectRow($0) }
        }
        for object in unreferenced {
            try database.run(
                "INSERT INTO doomed SELECT sequence, id, extension FROM objects WHERE sequence = ?", [object.sequence])
        }
        return (rows.last?.sequence, unreferenced)
    }

    /// Up to `limit` purged objects.
    func objectsToSweep(limit: Int) throws -> [DoomedObject] {
        for sql in [
            "SELECT object, id, extension FROM doomed LIMIT ?",
            "SELECT sequence, id, extension FROM objects WHERE sequence <= (SELECT emptied FROM cache_state) LIMIT ?",
        ] {
            let found = try database.all(sql, [limit]) {
                DoomedObject(sequence: try $0.value(0), file: try FileName($0, from: 1))
            }
            if !found.isEmpty { return found }
        }
        return []
    }

    /// Removes the rows of purged objects, whose files are removed.
    func deleteSwept(_ objects: [DoomedObject]) throws {
        try delete(objects.map(\.sequence))
        for object in objects { try database.run("DELETE FROM doomed WHERE object = ?", [object.sequence]) }
    }

    /// Whether an object is not purged.
    static let isLive = """
        objects.sequence > (SELECT emptied FROM cache_state)
        AND NOT EXISTS (SELECT 1 FROM doomed WHERE doomed.object = objects.sequence)
        """
    /// Whether the object of an alias is not purged.
    static let leadsToLive = """
        aliases.object > (SELECT emptied FROM cache_state)
        AND NOT EXISTS (SELECT 1 FROM doomed WHERE doomed.object = aliases.object)
        """
}
