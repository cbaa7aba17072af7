internal import SQLite

/// Changes of the index within one transaction.
///
/// Each line of the journal has a sequence, and a line that is older than what the index holds changes nothing. So lines may be
/// applied more than once.
struct IndexUpdate {
    private let database: SQLiteConnection

    init(in database: SQLiteConnection) {
        self.database = database
    }

    // MARK: Lines of the journal

    /// Applies one line.
    ///
    /// - Returns: What the line removed, if it is a purge.
    func apply(_ line: JournalLine) throws -> RemovedRows {
        switch line.entry {
        case .object(let record): try insert(record, line.sequence)
        case .alias(let record, let object): try insert(record, leadingTo: object, line.sequence)
        case .formerAlias(let url, let object): try insertFormerAlias(url, object, line.sequence)
        case .upload(let object): try recordUpload(of: object, line.sequence)
        case .purge(let scope): return try PurgeQuery(scope, before: line.sequence).removeCovered(in: database)
        }
        return RemovedRows()
    }

    private func insert(_ record: ObjectRecord, _ sequence: Int64) throws {
        if let stored = try ObjectRow.select(record.id, in: database) {
            guard stored.sequence < sequence else { return }
            // Not an upsert: the triggers that maintain the totals need a removal and an addition.
            try database.run("DELETE FROM objects WHERE id = ?", [record.id.bytes])
        }
        try database.run(
            "INSERT INTO objects VALUES (?, ?, ?, ?, ?, ?, ?, 0)",
            [
                sequence, record.id.bytes, record.fileExtension, record.length, record.content.bytes, record.created,
                record.facts,
            ])
    }

    private func insert(_ record: AliasRecord, leadingTo object: ObjectID, _ sequence: Int64) throws {
        try database.run(
            """
            INSERT OR REPLACE INTO former_aliases (object, url, sequence)
            SELECT object, url, sequence FROM aliases WHERE key = ? AND sequence < ? AND object <> ?
            """,
            [record.key.bytes, sequence, object.bytes])
        // While the index catches up, a later line of the alias may have been applied first.
        try database.run(
            """
            INSERT OR REPLACE INTO former_aliases (object, url, sequence)
            SELECT ?, ?, ? FROM aliases WHERE key = ? AND sequence > ? AND object <> ?
            """,
            [object.bytes, record.sourceURL, sequence, record.key.bytes, sequence, object.bytes])
        try database.run(
            """
            INSERT INTO aliases (key, sequence, object, url, etag, modified, fetched, fresh) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT (key) DO UPDATE SET
                sequence = excluded.sequence, object = excluded.object, url = excluded.url, etag = excluded.etag,
                modified = excluded.modified, fetched = excluded.fetched, fresh = excluded.fresh
            WHERE excluded.sequence > aliases.sequence
            """,
            [
                record.key.bytes, sequence, object.bytes, record.sourceURL, record.validators.etag,
                record.validators.lastModified,
                record.fetchedAt, record.freshFor,
            ])
    }

    private func insertFormerAlias(_ url: String, _ object: ObjectID, _ sequence: Int64) throws {
        try database.run(
            "INSERT OR REPLACE INTO former_aliases (object, url, sequence) VALUES (?, ?, ?)", [object.bytes, url, sequence])
    }

    /// A line about an object that was removed and stored again since then changes nothing: its sequence is lower.
    private func recordUpload(of object: ObjectID, _ sequence: Int64) throws {
        try database.run(
            "UPDATE objects SET uploaded = ? WHERE id = ? AND sequence < ? AND uploaded < ?",
            [sequence, object.bytes, sequence, sequence])
    }

    // MARK: Other changes

    /// Records the position, and that the cache is in use: a full disk may have refused to record that when it was opened.
    func setPosition(_ position: IndexPosition) throws {
        try database.run("UPDATE state SET journal = ?, applied = ?, clean = 0", [position.journal, position.offset])
    }

    /// Removes objects and the aliases that lead to them.
    func delete(_ objects: [ObjectRow]) throws {
        for object in objects {
            try database.run("DELETE FROM objects WHERE sequence = ? AND id = ?", [object.sequence, object.record.id.bytes])
            if database.changedRows > 0 {
                try database.run("DELETE FROM aliases WHERE object = ?", [object.record.id.bytes])
            }
        }
    }

    /// Removes aliases and former aliases of objects that the index does not have.
    func deleteDanglingAliases() throws {
        try database.run("DELETE FROM former_aliases WHERE object NOT IN (SELECT id FROM objects)")
        try database.run("DELETE FROM aliases WHERE object NOT IN (SELECT id FROM objects)")
    }
}

/// The rows that a purge covers: aliases older than it, and the objects that these lead or led to, unless another alias leads to
/// the object or it was uploaded.
struct PurgeQuery {
    private let scope: PurgeScope
    /// The sequence of the purge's line in the journal.
    private let sequence: Int64
    /// The covered aliases, in SQL that fits both tables of aliases.
    let condition: String
    /// The values of the parameters in ``condition``.
    let arguments: [any SQLiteValue]

    init(_ scope: PurgeScope, before sequence: Int64) {
        self.scope = scope
        self.sequence = sequence
        switch scope {
        case .all:
            (condition, arguments) = ("sequence < ?", [sequence])
        case .object(let id):
            (condition, arguments) = ("object = ? AND sequence < ?", [id.bytes, sequence])
        case .url(let url):
            (condition, arguments) = ("url = ? AND sequence < ?", [url, sequence])
        case .prefix(let prefix):
            // SQLite compares text by its bytes, and no byte of UTF-8 is 0xff: these bounds enclose exactly the URLs with the
            // prefix, and the index of URLs has them side by side.
            condition = "url >= ? AND url < CAST(? AS TEXT) AND sequence < ?"
            arguments = [prefix, Array(prefix.utf8) + [0xff], sequence]
        }
    }

    /// Selects the covered rows and changes nothing.
    func selectCovered(in database: SQLiteConnection) throws -> RemovedRows {
        var covered = RemovedRows()
        covered.aliases =
            try database.first("SELECT COUNT(*) FROM aliases WHERE \(condition)", arguments) { try $0.value(0) } ?? 0
        switch scope {
        case .all:
            let unaliased = "SELECT COUNT(*) FROM objects WHERE sequence < ? AND id NOT IN (SELECT object FROM aliases)"
            covered.unaliased = try database.first(unaliased, [sequence]) { try $0.value(0) } ?? 0
            covered.objects = try selectObjects("sequence < ?", [sequence], in: database)
        case .object(let id):
            covered.objects = try selectObjects("sequence < ? AND id = ?", [sequence, id.bytes], in: database)
            if covered.aliases == 0 { covered.unaliased = Int64(covered.objects.count) }
        case .url, .prefix:
            covered.objects = try selectObjects(
                """
                sequence < ? AND uploaded = 0 AND id IN (
                    SELECT object FROM aliases WHERE \(condition) UNION SELECT object FROM former_aliases WHERE \(condition))
                AND NOT EXISTS (SELECT 1 FROM aliases WHERE aliases.object = objects.id AND NOT (\(condition)))
                """,
                [sequence] + arguments + arguments + arguments, in: database)
        }
        return covered
    }

    /// Removes the covered rows and returns them.
    func removeCovered(in database: SQLiteConnection) throws -> RemovedRows {
        let covered = try selectCovered(in: database)
        try database.run("DELETE FROM aliases WHERE \(condition)", arguments)
        try database.run("DELETE FROM former_aliases WHERE \(condition)", arguments)
        for object in covered.objects { try database.run("DELETE FROM objects WHERE sequence = ?", [object.sequence]) }
        return covered
    }

    private func selectObjects(
        _ condition: String, _ arguments: [any SQLiteValue], in database: SQLiteConnection
    ) throws -> [ObjectRow] {
        try database.all("SELECT \(ObjectRow.columns) FROM objects WHERE \(condition)", arguments) { try ObjectRow($0) }
    }
}
