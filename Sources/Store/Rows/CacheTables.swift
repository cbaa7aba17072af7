/// The cache's tables in the ledger, and the statements on them, for use within one transaction.
///
/// Rows and purges share one order of sequences: each sequence is greater than all earlier ones, even after removals. A purge
/// is one row of ``PurgeTable``. Queries ignore what it covers, and a sweep later removes the covered rows and files.
struct CacheTables {
    static let owned = Ledger.Tables(
        owner: "cache", firstVersion: 7,
        steps: [
            """
            CREATE TABLE cache_state (
                only INTEGER PRIMARY KEY CHECK (only = 1),
                -- The latest sequence, and that before which aliases have to be revalidated.
                sequence INTEGER NOT NULL, revalidated INTEGER NOT NULL,
                -- Where the eviction hand stopped, and whether every file has a row.
                hand INTEGER NOT NULL, clean INTEGER NOT NULL,
                objects INTEGER NOT NULL, bytes INTEGER NOT NULL, object_space INTEGER NOT NULL,
                aliases INTEGER NOT NULL, alias_space INTEGER NOT NULL,
                -- The latest sequence before which purges may have been missed.
                unconfirmed INTEGER NOT NULL
            );
            INSERT INTO cache_state VALUES (1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
            CREATE TABLE objects (
                sequence INTEGER PRIMARY KEY,
                id BLOB NOT NULL UNIQUE, extension TEXT NOT NULL, length INTEGER NOT NULL, content BLOB NOT NULL,
                created INTEGER NOT NULL, facts BLOB NOT NULL, space INTEGER NOT NULL,
                -- The sequence and the time of the latest upload; 0 for an object that was not uploaded.
                upload INTEGER NOT NULL, upload_began INTEGER NOT NULL
            );
            CREATE TABLE aliases (
                sequence INTEGER PRIMARY KEY,
                -- Null if the alias leads to another object now. A purge of its source covers the former object, too.
                key BLOB UNIQUE, former INTEGER NOT NULL,
                object INTEGER NOT NULL, url TEXT NOT NULL,
                etag TEXT, modified TEXT, fetched INTEGER NOT NULL, fresh INTEGER, space INTEGER NOT NULL,
                -- 1 if the origin forbids to use the alias once it is stale.
                strict INTEGER NOT NULL,
                -- The canonical text of format and options.
                rendition TEXT NOT NULL,
                -- When the request to the origin began, in milliseconds of the cluster's clock.
                began INTEGER NOT NULL,
                -- The lifetime in clients; null if it is not shorter.
                client_fresh INTEGER
            );
            CREATE INDEX aliases_by_url ON aliases (url);
            CREATE INDEX aliases_by_object ON aliases (object, former);
            -- Removed objects that aliases may still lead to. A sweep removes these.
            CREATE TABLE removed (object INTEGER PRIMARY KEY);
            CREATE TRIGGER object_added AFTER INSERT ON objects BEGIN
                UPDATE cache_state SET
                    objects = objects + 1, bytes = bytes + NEW.length, object_space = object_space + NEW.space;
            END;
            CREATE TRIGGER object_removed AFTER DELETE ON objects BEGIN
                INSERT INTO removed SELECT OLD.sequence WHERE EXISTS (SELECT 1 FROM aliases WHERE object = OLD.sequence);
                UPDATE cache_state SET
                    objects = objects - 1, bytes = bytes - OLD.length, object_space = object_space - OLD.space;
            END;
            CREATE TRIGGER alias_added AFTER INSERT ON aliases BEGIN
                UPDATE cache_state SET aliases = aliases + 1, alias_space = alias_space + NEW.space;
            END;
            CREATE TRIGGER alias_replaced AFTER UPDATE OF former ON aliases BEGIN
                UPDATE cache_state SET aliases = aliases - 1;
            END;
            CREATE TRIGGER alias_removed AFTER DELETE ON aliases BEGIN
                UPDATE cache_state SET aliases = aliases - (OLD.former = 0), alias_space = alias_space - OLD.space;
            END;
            """
        ])

    let database: SQLiteConnection
    let purges: PurgeIndex

    init(_ database: SQLiteConnection, _ purges: PurgeIndex) {
        self.database = database
        self.purges = purges
    }

    // MARK: State

    func state() throws -> CacheState {
        let state = try database.first(
            """
            SELECT sequence, revalidated, hand, clean, objects, bytes, object_space, aliases, alias_space, unconfirmed
            FROM cache_state
            """
        ) { row in
            func number(_ column: Int) throws -> Int64 { try row.number(column, in: 0...(1 << 60)) }
            return CacheState(
                sequence: try number(0), revalidated: try number(1), hand: try number(2), isClean: try row.value(3),
                totals: CacheTotals(
                    objects: try number(4), bytes: try number(5), objectSpace: try number(6), aliases: try number(7),
                    aliasSpace: try number(8)),
                unconfirmed: try number(9))
        }
        guard let state, max(state.revalidated, state.unconfirmed) <= state.sequence else {
            throw LedgerError(.damage, "the state of the cache is out of range")
        }
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
        let column = doubt == .certain ? "revalidated" : "unconfirmed"
        try database.run("UPDATE cache_state SET \(column) = max(\(column), ?)", [sequence])
    }

    // MARK: Queries

    /// The live alias with that key, and its object.
    func aliasRow(_ key: AliasKey) throws -> AliasRow? {
        let row = try database.first(
            """
            SELECT \(AliasRow.columns) FROM aliases JOIN objects ON objects.sequence = aliases.object WHERE aliases.key = ?
            """, [key.bytes]
        ) { try AliasRow($0) }
        return row.flatMap { isLive($0) ? $0 : nil }
    }

    /// Up to `limit` live aliases of a source and their objects, the newest first.
    func aliases(of sourceURL: String, limit: Int) throws -> [AliasRow] {
        try database.all(
            """
            SELECT \(AliasRow.columns) FROM aliases JOIN objects ON objects.sequence = aliases.object
            WHERE aliases.url = ? AND aliases.former = 0 ORDER BY aliases.sequence DESC LIMIT ?
            """, [sourceURL, limit]
        ) { try AliasRow($0) }.filter { isLive($0) }
    }

    /// Up to `limit` URLs of sources after `url`, in order. A purge may cover everything stored of some sources.
    func sources(after url: String, limit: Int) throws -> [String] {
        try database.all(
            "SELECT DISTINCT url FROM aliases WHERE url > ? AND former = 0 ORDER BY url LIMIT ?", [url, limit]
        ) { try $0.value(0) }
    }

    private func isLive(_ row: AliasRow) -> Bool {
        !purges.covers(row.record.sourceURL, row.object.record.id, row.sequence, began: row.began)
    }

    /// The object with that id, if it is live.
    func objectRow(_ id: ObjectID) throws -> ObjectRow? {
        try knownObjectRow(id).flatMap { try isLive($0) ? $0 : nil }
    }

    /// The object with that id, live or not.
    func knownObjectRow(_ id: ObjectID) throws -> ObjectRow? {
        try objectRows("id = ?", [id.bytes]).first
    }

    func objectRow(at sequence: Int64) throws -> ObjectRow? {
        try objectRows("sequence = ?", [sequence]).first
    }

    func objectRows(_ condition: String, _ values: [any SQLiteValue]) throws -> [ObjectRow] {
        try database.all("SELECT \(ObjectRow.columns) FROM objects WHERE \(condition)", values) { try ObjectRow($0) }
    }

    /// Whether an object is live: its upload or one of its aliases is not covered by a purge. Without current aliases, former
    /// ones count.
    func isLive(_ object: ObjectRow) throws -> Bool {
        guard purges.hasUnswept else { return true }
        let id = object.record.id
        if object.upload.sequence > 0, !purges.covers(nil, id, object.upload.sequence, began: object.upload.began) {
            return true
        }
        for former in [false, true] {
            let rows = try database.all(
                """
                SELECT url, sequence, began FROM aliases WHERE object = ? AND former = ? ORDER BY sequence DESC LIMIT \(Self.mostCompared)
                """, [object.sequence, former]
            ) { (url: try $0.value(0) as String, sequence: try $0.value(1) as Int64, began: try $0.value(2) as Int64) }
            if !rows.isEmpty { return rows.contains { !purges.covers($0.url, id, $0.sequence, began: $0.began) } }
        }
        // Nothing leads to it any longer: only a purge of the object itself, or of everything, covers it.
        return object.upload.sequence == 0 && !purges.covers(nil, id, object.sequence, began: 0)
    }

    /// Whether an object was uploaded, or confirmed by an origin, since purges were missed; see ``AliasDoubts/missed``.
    func isConfirmed(_ id: ObjectID, since missed: (aliases: Int64, uploads: Int64)) throws -> Bool {
        try database.first(
            """
            SELECT 1 FROM objects WHERE id = ? AND (upload > ? OR EXISTS (
                SELECT 1 FROM aliases WHERE object = objects.sequence AND former = 0 AND aliases.sequence > ?))
            """, [id.bytes, missed.uploads, missed.aliases]
        ) { _ in true } ?? false
    }

    /// The number of an object's newest aliases to compare with purges. If purges cover all of them, the object counts as
    /// covered.
    private static var mostCompared: Int { 4096 }

    /// Up to `limit` objects after `sequence`, in the order of the eviction queue.
    func objects(after sequence: Int64, limit: Int) throws -> [ObjectRow] {
        try objectRows("sequence > ? ORDER BY sequence LIMIT ?", [sequence, limit])
    }

    /// The names of all objects whose ids begin with the byte `first`.
    func names(ofObjectsIn first: UInt8) throws -> Set<RenditionName> {
        let bounds = [[first] + Array(repeating: 0, count: 31), [first] + Array(repeating: 0xff, count: 31)]
        return Set(
            try database.all("SELECT id, extension FROM objects WHERE id >= ? AND id <= ?", bounds) { row in
                guard let name = RenditionName(id: try row.digest(0), fileExtension: try row.value(1)) else {
                    throw LedgerError(.damage, "an extension is out of range")
                }
                return name
            })
    }

    // MARK: Adding

    /// Adds an object, and replaces a row with its id, which must not have a file.
    ///
    /// - Parameter began: When its upload began; nil if it was not uploaded.
    func insert(_ record: ObjectRecord, _ sequence: Int64, uploadBegan began: Int64?) throws {
        // The old row is purged and not swept yet, or its file is missing.
        try database.run("DELETE FROM objects WHERE id = ?", [record.id.bytes])
        try database.run(
            """
            INSERT INTO objects (sequence, id, extension, length, content, created, facts, space, upload, upload_began)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """,
            [
                sequence, record.id.bytes, record.fileExtension, record.length, record.content.bytes, record.created,
                record.facts, record.space, began == nil ? 0 : sequence, began ?? 0,
            ])
    }

    /// Adds or replaces an alias.
    ///
    /// - Parameters:
    ///   - object: The sequence of its object.
    ///   - began: When the request to its origin began.
    func insert(_ record: AliasRecord, leadingTo object: Int64, _ sequence: Int64, began: Int64) throws {
        let key = record.key.bytes
        try database.run(
            """
            DELETE FROM aliases WHERE former = 1 AND (object, url) IN
                (SELECT object, url FROM aliases WHERE key = ? AND object <> ?)
            """, [key, object])
        try database.run("UPDATE aliases SET key = NULL, former = 1 WHERE key = ? AND object <> ?", [key, object])
        try database.run("DELETE FROM aliases WHERE key = ?", [key])
        try database.run(
            """
            INSERT INTO aliases
                (sequence, key, former, object, url, etag, modified, fetched, fresh, space, strict, rendition, began, client_fresh)
            VALUES (?, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """,
            [
                sequence, key, object, record.sourceURL, record.validators.etag, record.validators.lastModified,
                record.times.fetchedAt, record.times.freshFor, record.space, record.times.mustRevalidate, record.rendition,
                began, record.times.clientFreshFor,
            ])
    }

    func markUploaded(_ object: Int64, _ sequence: Int64, began: Int64) throws {
        try database.run(
            "UPDATE objects SET upload = ?, upload_began = ? WHERE sequence = ?", [sequence, began, object])
    }

    // MARK: Removing

    /// Removes the rows of objects, whose files are already removed, and a bounded number of aliases of each. A sweep removes
    /// the other aliases.
    func delete(_ objects: some Sequence<Int64>) throws {
        for sequence in objects {
            _ = try deleteAliases(of: sequence, limit: Self.mostWithObject)
            // A trigger notes the object in `removed` if it has other aliases.
            try database.run("DELETE FROM objects WHERE sequence = ?", [sequence])
        }
    }

    /// Most objects have fewer aliases, and need no sweep.
    private static var mostWithObject: Int { 8 }

    /// Returns the unused aliases, with their objects, among up to `limit` of the oldest aliases after a sequence, and the last
    /// sequence examined, nil if there was none. A requested alias is renewed from time to time and thereby becomes the newest.
    func oldestAliases(
        after sequence: Int64, limit: Int, unless isInUse: (AliasKey) -> Bool
    ) throws -> (last: Int64?, unused: [AliasReference]) {
        let rows = try database.all(
            "SELECT sequence, object, key FROM aliases WHERE sequence > ? ORDER BY sequence LIMIT ?", [sequence, limit]
        ) { row in
            (alias: (try row.value(0), try row.value(1)) as AliasReference, key: try row.value(2) as [UInt8]?)
        }
        let unused = rows.filter { row in row.key.flatMap { AliasKey(bytes: $0) }.map { !isInUse($0) } ?? true }
        return (rows.last?.alias.sequence, unused.map(\.alias))
    }

    func delete(aliases: [Int64]) throws {
        for alias in aliases { try database.run("DELETE FROM aliases WHERE sequence = ?", [alias]) }
    }

    /// Returns the objects that only these aliases lead to.
    func unreferenced(by aliases: [AliasReference]) throws -> [ObjectRow] {
        let sequences = Set(aliases.map(\.sequence))
        return try Set(aliases.map(\.object)).sorted().compactMap { object in
            guard let row = try objectRow(at: object), row.upload.sequence == 0 else { return nil }
            let others = try database.all(
                "SELECT sequence FROM aliases WHERE object = ? AND former = 0 LIMIT ?", [object, sequences.count + 1]
            ) { try $0.value(0) as Int64 }
            return others.allSatisfy(sequences.contains) ? row : nil
        }
    }

    /// Whether aliases may lead to removed objects.
    func hasRemoved() throws -> Bool {
        try database.first("SELECT 1 FROM removed") { _ in true } ?? false
    }

    /// Removes up to `limit` aliases of removed objects. Returns whether there may be more.
    func deleteAliasesOfRemoved(limit: Int) throws -> Bool {
        var left = limit
        while left > 0 {
            let object = try database.first("SELECT object FROM removed") { try $0.value(0) as Int64 }
            guard let object else { return false }
            let count = try deleteAliases(of: object, limit: left)
            if count < left { try database.run("DELETE FROM removed WHERE object = ?", [object]) }
            left -= max(1, count)
        }
        return true
    }

    /// Removes up to `limit` aliases that lead to an object, and returns their number.
    private func deleteAliases(of object: Int64, limit: Int) throws -> Int {
        let aliases = try database.all("SELECT sequence FROM aliases WHERE object = ? LIMIT ?", [object, limit]) {
            try $0.value(0) as Int64
        }
        try delete(aliases: aliases)
        return aliases.count
    }
}
