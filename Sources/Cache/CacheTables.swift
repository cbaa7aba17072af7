internal import Ledger

/// The cache's tables in the ledger, and the statements on them, for use within one transaction.
///
/// Rows have sequences: each object and alias a greater one than all before it, also after removals. A purge of everything only
/// records the latest sequence, and other purges note the objects that they cover. These rows do not exist for a query, and a sweep
/// removes them later together with the files.
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
    fileprivate static let isLive = """
        objects.sequence > (SELECT emptied FROM cache_state)
        AND NOT EXISTS (SELECT 1 FROM doomed WHERE doomed.object = objects.sequence)
        """
    /// Whether the object of an alias is not purged.
    fileprivate static let leadsToLive = """
        aliases.object > (SELECT emptied FROM cache_state)
        AND NOT EXISTS (SELECT 1 FROM doomed WHERE doomed.object = aliases.object)
        """
}

// MARK: - Purges

extension CacheTables {
    /// What a purge removed.
    struct Purged: Sendable {
        /// Aliases, and objects without one.
        var renditions: Int64 = 0
        var bytes: Int64 = 0
        /// The removed objects; nil for many.
        var objects: Set<ObjectID>? = []
        /// Whether ``continuePurge()`` has to follow.
        var isPartial = false

        mutating func add(_ part: Purged) {
            renditions += part.renditions
            bytes += part.bytes
            objects = objects.flatMap { all in part.objects.map { all.union($0) } }
            if let count = objects?.count, count >= CacheTables.manyObjects { objects = nil }
            isPartial = part.isPartial
        }
    }

    /// Removes what a purge covers: aliases, and the objects that these lead or led to, unless another alias leads to the object
    /// or it was uploaded. Files follow with ``objectsToSweep(limit:)``.
    ///
    /// - Parameters:
    ///   - time: See ``Cache/purge(_:madeAt:with:)``.
    ///   - sequence: The latest sequence.
    ///   - inParts: Whether only the beginning of a large purge by prefix is done now.
    func purge(
        _ scope: PurgeScope, madeAt time: Int64? = nil, _ sequence: Int64, inParts: Bool = false
    ) throws -> Purged {
        if inParts, time == nil, case .prefix(let prefix) = scope {
            let purged = try purgePart(prefix, through: sequence)
            if purged.isPartial { try database.run("INSERT OR REPLACE INTO purging VALUES (?, ?)", [prefix, sequence]) }
            return purged
        }
        var time = time
        // The usual purge of everything takes no time for each row.
        if scope == .all, let moment = time, try !hasNewer(than: moment) { time = nil }
        var purged = try count(scope, madeAt: time)
        if scope == .all, time == nil {
            purged.objects = nil
            try database.run(
                """
                UPDATE cache_state SET
                    sequence = ?1, emptied = ?1, objects = 0, bytes = 0, object_space = 0, aliases = 0, alias_space = 0
                """, [sequence])
            return purged
        }
        let (objects, aliases) = Self.conditions(scope, madeAt: time)
        let ids = try database.all(
            "SELECT id FROM objects WHERE \(objects.sql) LIMIT \(Self.manyObjects)", objects.arguments
        ) { try $0.digest(0) as ObjectID }
        purged.objects = ids.count < Self.manyObjects ? Set(ids) : nil
        try database.run(
            "INSERT INTO doomed SELECT sequence, id, extension FROM objects WHERE \(objects.sql)", objects.arguments)
        // The rest leads to objects that stay.
        if let aliases {
            try database.run("DELETE FROM aliases WHERE \(aliases.sql) AND \(Self.leadsToLive)", aliases.arguments)
        }
        return purged
    }

    /// Whether there are uploads or aliases from after `time`.
    private func hasNewer(than time: Int64) throws -> Bool {
        try database.first(
            """
            SELECT EXISTS (SELECT 1 FROM objects WHERE uploaded = 1 AND created > ?1 AND \(Self.isLive))
                OR EXISTS (SELECT 1 FROM aliases WHERE fetched > ?1 AND \(Self.leadsToLive))
            """, [time]
        ) { try $0.value(0) } ?? false
    }

    /// Does the next part of a purge by prefix.
    ///
    /// - Returns: Nil if there is nothing to continue.
    func continuePurge() throws -> Purged? {
        let next = try database.first("SELECT prefix, sequence FROM purging") { row in
            (prefix: try row.value(0) as String, sequence: try row.value(1) as Int64)
        }
        guard let next else { return nil }
        let purged = try purgePart(next.prefix, through: next.sequence)
        if !purged.isPartial { try database.run("DELETE FROM purging WHERE prefix = ?", [next.prefix]) }
        return purged
    }

    /// The purges that ``continuePurge()`` has not ended.
    func unfinishedPurges() throws -> [PurgeScope] {
        try database.all("SELECT prefix FROM purging") { .prefix(try $0.value(0)) }
    }

    /// Removes a bounded number of the aliases with a prefix that are not later than a sequence, and the objects that only they lead or
    /// led to.
    private func purgePart(_ prefix: String, through sequence: Int64) throws -> Purged {
        let condition = Self.prefixCondition(prefix)
        let rows = try database.all(
            """
            SELECT sequence, object, former = 0 AND \(Self.leadsToLive) FROM aliases
            WHERE \(condition.sql) AND sequence <= ? ORDER BY url LIMIT \(Self.aliasesPerPart)
            """, condition.arguments + [sequence]
        ) { row in
            (sequence: try row.value(0) as Int64, object: try row.value(1) as Int64, counts: try row.value(2) as Bool)
        }
        for row in rows { try database.run("DELETE FROM aliases WHERE sequence = ?", [row.sequence]) }
        var purged = Purged(renditions: Int64(rows.count { $0.counts }), isPartial: rows.count == Self.aliasesPerPart)
        var ids: Set<ObjectID> = []
        for object in Set(rows.map(\.object)) {
            let removed = try database.first(
                """
                SELECT id, length FROM objects WHERE sequence = ? AND uploaded = 0 AND \(Self.isLive)
                    AND NOT EXISTS (SELECT 1 FROM aliases WHERE aliases.object = objects.sequence AND former = 0)
                """, [object]
            ) { (id: try $0.digest(0) as ObjectID, length: try $0.value(1) as Int64) }
            guard let removed else { continue }
            try database.run("INSERT INTO doomed SELECT sequence, id, extension FROM objects WHERE sequence = ?", [object])
            purged.bytes += removed.length
            ids.insert(removed.id)
        }
        purged.objects = ids
        return purged
    }

    private static var aliasesPerPart: Int { 1000 }

    /// Counts what a purge covers, and changes nothing.
    func count(_ scope: PurgeScope, madeAt time: Int64? = nil) throws -> Purged {
        let (objects, aliases) = Self.conditions(scope, madeAt: time)
        func number(_ sql: String, _ arguments: [any SQLiteValue]) throws -> Int64 {
            try database.first(sql, arguments) { try $0.value(0) } ?? 0
        }
        var purged = Purged()
        if scope == .all, time == nil {
            let totals = try state().totals
            let referenced = try number(
                """
                SELECT count(*) FROM (
                    SELECT DISTINCT object FROM aliases WHERE former = 0 AND \(Self.leadsToLive))
                """, [])
            purged.renditions = totals.aliases + totals.objects - referenced
            purged.bytes = totals.bytes
            return purged
        }
        purged.bytes = try number("SELECT ifnull(sum(length), 0) FROM objects WHERE \(objects.sql)", objects.arguments)
        if let aliases {
            purged.renditions = try number(
                "SELECT count(*) FROM aliases WHERE former = 0 AND \(Self.leadsToLive) AND \(aliases.sql)", aliases.arguments)
        } else {
            purged.renditions = try number(
                """
                SELECT ifnull(sum(max(1, (SELECT count(*) FROM aliases WHERE object = objects.sequence AND former = 0))), 0)
                FROM objects WHERE \(objects.sql)
                """, objects.arguments)
        }
        return purged
    }

    /// Calls `body` with the file of each object that a purge covers.
    func forEachFile(
        coveredBy scope: PurgeScope, madeAt time: Int64? = nil, _ body: (FileName) -> Void
    ) throws {
        let (objects, _) = Self.conditions(scope, madeAt: time)
        try database.forEach("SELECT id, extension FROM objects WHERE \(objects.sql)", objects.arguments) {
            body(try FileName($0, from: 0))
        }
    }

    private typealias Condition = (sql: String, arguments: [any SQLiteValue])

    /// The objects that a purge covers, and the aliases; nil for those of the objects.
    private static func conditions(
        _ scope: PurgeScope, madeAt time: Int64?
    ) -> (objects: Condition, aliases: Condition?) {
        var aliases: Condition
        switch scope {
        case .all:
            guard let time else { return ((isLive, []), nil) }
            let objects = """
                (uploaded = 0 OR created <= ?) AND \(isLive) AND NOT EXISTS (
                    SELECT 1 FROM aliases WHERE aliases.object = objects.sequence AND former = 0 AND fetched > ?)
                """
            return ((objects, [time, time]), ("fetched <= ?", [time]))
        case .object(let id): return (("id = ? AND created <= ? AND \(isLive)", [id.bytes, time ?? .max]), nil)
        case .url(let url): aliases = ("url = ?", [url])
        case .prefix(let prefix): aliases = prefixCondition(prefix)
        }
        if let time { aliases = ("\(aliases.sql) AND fetched <= ?", aliases.arguments + [time]) }
        let objects = """
            objects.sequence IN (SELECT object FROM aliases WHERE \(aliases.sql)) AND uploaded = 0 AND \(isLive)
            AND NOT EXISTS (
                SELECT 1 FROM aliases WHERE aliases.object = objects.sequence AND former = 0 AND NOT (\(aliases.sql)))
            """
        return ((objects, aliases.arguments + aliases.arguments), aliases)
    }

    /// SQLite compares text by its bytes, and no byte of UTF-8 is 0xff: these bounds enclose exactly the URLs with the prefix, and the
    /// index of URLs has them side by side.
    private static func prefixCondition(_ prefix: String) -> Condition {
        ("url >= ? AND url < CAST(? AS TEXT)", [prefix, Array(prefix.utf8) + [0xff]])
    }

    /// From this number on, the ids of purged objects are not listed.
    fileprivate static var manyObjects: Int { 4096 }
}
