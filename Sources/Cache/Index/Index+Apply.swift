internal import Foundation
internal import GRDB

/// Changes to the index.
extension Index {
    /// Applies lines of the journal, in order, in one transaction. A line that is older than what the index has changes nothing.
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
                case .purge(let scope): try Self.purge(scope, before: line.sequence, in: database, &removed)
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
        try wrap { try self.pool.writeWithoutTransaction { _ = try $0.checkpoint(emptyingLog ? .truncate : .full) } }
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
        try database.cachedStatement(sql: "INSERT INTO objects VALUES (?, ?, ?, ?, ?, ?, ?)").execute(arguments: [
            sequence, record.id.data, record.fileExtension, record.length, record.content.data, record.created, Data(record.facts),
        ])
    }

    private static func put(_ record: AliasRecord, _ object: ObjectID, _ sequence: Int64, in database: Database) throws {
        try database.cachedStatement(sql: """
            INSERT INTO aliases (key, sequence, object, url, etag, modified, fetched, fresh) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT (key) DO UPDATE SET
                sequence = excluded.sequence, object = excluded.object, url = excluded.url, etag = excluded.etag,
                modified = excluded.modified, fetched = excluded.fetched, fresh = excluded.fresh
            WHERE excluded.sequence > aliases.sequence
            """).execute(arguments: [
                record.key.data, sequence, object.data, record.sourceURL, record.validators.etag, record.validators.lastModified,
                record.fetchedAt, record.freshFor,
            ])
    }

    /// Removes the covered aliases that are older than the purge, and the objects of theirs that no other alias leads to.
    private static func purge(_ scope: PurgeScope, before sequence: Int64, in database: Database, _ removed: inout Removed) throws {
        let (condition, arguments): (String, StatementArguments) = switch scope {
        case .all: ("TRUE", [])
        case .url(let url): ("url = ?", [url])
        // substr() counts characters; the comparison is of bytes, as SQLite's BINARY collation orders text.
        case .prefix(let prefix): ("url >= ? AND substr(CAST(url AS BLOB), 1, ?) = ?", [prefix, prefix.utf8.count, Data(prefix.utf8)])
        }
        let doomed = "SELECT object FROM aliases WHERE \(condition) AND sequence < ?"
        let orphaned = scope == .all
            ? "objects.sequence < ?"
            : "objects.sequence < ? AND objects.id IN (\(doomed)) AND NOT EXISTS (SELECT 1 FROM aliases WHERE aliases.object = objects.id AND NOT (\(condition) AND aliases.sequence < ?))"
        let orphanedArguments: StatementArguments = scope == .all ? [sequence] : [sequence] + arguments + [sequence] + arguments + [sequence]

        let objects = try Row.fetchAll(database, sql: "SELECT \(objectColumns) FROM objects WHERE \(orphaned)", arguments: orphanedArguments)
            .map { try object($0) }
        if scope == .all {
            let unaliased = "SELECT COUNT(*) FROM objects WHERE sequence < ? AND id NOT IN (SELECT object FROM aliases)"
            removed.unaliased += try Int64.fetchOne(database, sql: unaliased, arguments: [sequence]) ?? 0
        }
        try database.execute(sql: "DELETE FROM aliases WHERE \(condition) AND sequence < ?", arguments: arguments + [sequence])
        removed.aliases += Int64(database.changesCount)
        let remove = try database.cachedStatement(sql: "DELETE FROM objects WHERE sequence = ?")
        for object in objects { try remove.execute(arguments: [object.sequence]) }
        removed.objects += objects
    }
}
