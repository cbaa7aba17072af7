internal import Foundation
internal import GRDB

/// Changes to the index.
extension Index {
    /// Applies lines of the journal, in order, in one transaction. A line that is older than what the index has changes
    /// nothing.
    ///
    /// - Parameter position: Noted as the place up to which the journal is applied; nil leaves it.
    /// - Returns: What purges among the lines removed; the files are the caller's to remove.
    func apply(_ lines: [JournalLine], position: IndexPosition?) throws(IndexError) -> Removed {
        try write { database in
            var removed = Removed()
            for line in lines {
                switch line.entry {
                case .object(let record): try Self.put(record, line.sequence, in: database)
                case .alias(let record, let object): try Self.put(record, object, line.sequence, in: database)
                case .formerAlias(let url, let object): try Self.putFormer(url, object, line.sequence, in: database)
                case .upload(let object): try Self.putUpload(of: object, line.sequence, in: database)
                case .purge(let scope): removed.add(try Self.purge(scope, before: line.sequence, in: database))
                }
            }
            if let position {
                try database.cachedStatement(sql: "UPDATE state SET journal = ?, applied = ?")
                    .execute(arguments: [position.journal, position.offset])
            }
            return removed
        }
    }

    /// Forgets objects and the aliases that lead to them.
    func remove(_ objects: [ObjectRow]) throws(IndexError) {
        try write { database in
            let removeObject = try database.cachedStatement(sql: "DELETE FROM objects WHERE sequence = ? AND id = ?")
            let removeAliases = try database.cachedStatement(sql: "DELETE FROM aliases WHERE object = ?")
            for object in objects {
                try removeObject.execute(arguments: [object.sequence, object.record.id.data])
                if database.changesCount > 0 { try removeAliases.execute(arguments: [object.record.id.data]) }
            }
        }
    }

    /// Forgets aliases that lead nowhere. Returns how many there were.
    func removeDanglingAliases() throws(IndexError) -> Int {
        try write { database in
            try database.execute(sql: "DELETE FROM former_aliases WHERE object NOT IN (SELECT id FROM objects)")
            try database.execute(sql: "DELETE FROM aliases WHERE object NOT IN (SELECT id FROM objects)")
            return database.changesCount
        }
    }

    func setHand(_ hand: Int64) throws(IndexError) {
        try write { try $0.cachedStatement(sql: "UPDATE state SET hand = ?").execute(arguments: [hand]) }
    }

    func setClean(_ clean: Bool) throws(IndexError) {
        try write { try $0.cachedStatement(sql: "UPDATE state SET clean = ?").execute(arguments: [clean]) }
    }

    /// Makes all that was written durable.
    ///
    /// - Parameter emptyingLog: Whether SQLite's log is emptied, too, so that the database is one file again.
    func checkpoint(emptyingLog: Bool) throws(IndexError) {
        try whileOpen { try pool.writeWithoutTransaction { _ = try $0.checkpoint(emptyingLog ? .truncate : .full) } }
    }

    func setPosition(_ position: IndexPosition) throws(IndexError) {
        _ = try apply([], position: position)
    }

    private static func put(_ record: ObjectRecord, _ sequence: Int64, in database: Database) throws {
        if let old = try object(record.id, in: database) {
            guard old.sequence < sequence else { return }
            // Not an upsert: the triggers that keep the totals see a removal and an addition.
            try database.cachedStatement(sql: "DELETE FROM objects WHERE id = ?").execute(arguments: [record.id.data])
        }
        try database.cachedStatement(sql: "INSERT INTO objects VALUES (?, ?, ?, ?, ?, ?, ?, 0)").execute(arguments: [
            sequence, record.id.data, record.fileExtension, record.length, record.content.data, record.created,
            Data(record.facts),
        ])
    }

    /// A line about an object that was removed and stored again since then changes nothing: the sequences tell.
    private static func putUpload(of object: ObjectID, _ sequence: Int64, in database: Database) throws {
        try database.cachedStatement(sql: "UPDATE objects SET uploaded = ? WHERE id = ? AND sequence < ? AND uploaded < ?")
            .execute(arguments: [sequence, object.data, sequence, sequence])
    }

    private static func putFormer(_ url: String, _ object: ObjectID, _ sequence: Int64, in database: Database) throws {
        try database.cachedStatement(sql: "INSERT OR REPLACE INTO former_aliases (object, url, sequence) VALUES (?, ?, ?)")
            .execute(arguments: [object.data, url, sequence])
    }

    private static func put(_ record: AliasRecord, _ object: ObjectID, _ sequence: Int64, in database: Database) throws {
        try database.cachedStatement(
            sql: """
                INSERT OR REPLACE INTO former_aliases (object, url, sequence)
                SELECT object, url, sequence FROM aliases WHERE key = ? AND sequence < ? AND object <> ?
                """
        ).execute(arguments: [record.key.data, sequence, object.data])
        try database.cachedStatement(
            sql: """
                INSERT INTO aliases (key, sequence, object, url, etag, modified, fetched, fresh) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
                ON CONFLICT (key) DO UPDATE SET
                    sequence = excluded.sequence, object = excluded.object, url = excluded.url, etag = excluded.etag,
                    modified = excluded.modified, fetched = excluded.fetched, fresh = excluded.fresh
                WHERE excluded.sequence > aliases.sequence
                """
        ).execute(arguments: [
            record.key.data, sequence, object.data, record.sourceURL, record.validators.etag, record.validators.lastModified,
            record.fetchedAt, record.freshFor,
        ])
    }
}
