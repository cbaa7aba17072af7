internal import SQLite

/// What the journal says, in SQLite, for look-ups.
///
/// It follows the journal line by line, and records its position in the same transaction. After a crash, the rest of the journal
/// is applied again. Any number of threads may query while one changes. Every call may block: not for I/O threads.
final class Index: Sendable {
    static let fileName = "index.sqlite"

    private let database: IndexDatabase

    /// Opens the index, and creates an empty one if the file is missing.
    ///
    /// - Parameter path: The database file.
    init(path: String) throws(IndexError) {
        database = try IndexDatabase(path: path)
    }

    /// Waits for running queries and closes the database. Later calls fail.
    func close() {
        database.close()
    }

    // MARK: Queries

    func aliasRow(_ key: AliasKey) throws(IndexError) -> AliasRow? {
        try database.query { database in
            try database.first(
                """
                SELECT \(AliasRow.columns)
                FROM aliases JOIN objects ON objects.id = aliases.object WHERE aliases.key = ?
                """,
                [key.bytes]
            ) { try AliasRow($0) }
        }
    }

    func objectRow(_ id: ObjectID) throws(IndexError) -> ObjectRow? {
        try database.query { try ObjectRow.select(id, in: $0) }
    }

    /// The file extensions of all objects whose ids begin with the byte `first`.
    func extensions(ofObjectsIn first: UInt8) throws(IndexError) -> [ObjectID: String] {
        try database.query { database in
            let bounds = [[first] + Array(repeating: 0, count: 31), [first] + Array(repeating: 0xff, count: 31)]
            var extensions: [ObjectID: String] = [:]
            try database.forEach("SELECT id, extension FROM objects WHERE id >= ? AND id <= ?", bounds) { row in
                let fileExtension: String = try row.value(1)
                guard ObjectRecord.isExtension(fileExtension) else {
                    throw IndexError(broken: "an extension is out of range")
                }
                extensions[try row.digest(0)] = fileExtension
            }
            return extensions
        }
    }

    /// Up to `limit` objects after `sequence`, in the order of the eviction queue.
    func objects(after sequence: Int64, limit: Int) throws(IndexError) -> [ObjectRow] {
        try database.query { database in
            try database.all(
                "SELECT \(ObjectRow.columns) FROM objects WHERE sequence > ? ORDER BY sequence LIMIT ?", [sequence, limit]
            ) { try ObjectRow($0) }
        }
    }

    /// Up to `limit` aliases after `key`, in the order of their keys.
    func aliases(after key: AliasKey?, limit: Int) throws(IndexError) -> [AliasRow] {
        try database.query { database in
            try database.all(
                """
                SELECT \(AliasRow.columns)
                FROM aliases JOIN objects ON objects.id = aliases.object
                WHERE aliases.key > ? ORDER BY aliases.key LIMIT ?
                """,
                [key?.bytes ?? [], limit]
            ) { try AliasRow($0) }
        }
    }

    /// Up to `limit` former aliases after `last`, in the order of their objects and URLs.
    func formerAliases(after last: FormerAliasRow?, limit: Int) throws(IndexError) -> [FormerAliasRow] {
        try database.query { database in
            try database.all(
                "SELECT object, url, sequence FROM former_aliases WHERE (object, url) > (?, ?) ORDER BY object, url LIMIT ?",
                [last?.object.bytes ?? [], last?.url ?? "", limit]
            ) { try FormerAliasRow($0) }
        }
    }

    func totals() throws(IndexError) -> IndexTotals {
        try database.query { database in
            let totals = try database.first("SELECT objects, bytes FROM state") { row in
                IndexTotals(objects: try row.value(0), bytes: try row.value(1))
            }
            guard let totals else { throw IndexError(broken: "it has no state") }
            guard totals.objects >= 0, (0...ObjectRecord.maxNumber).contains(totals.bytes) else {
                throw IndexError(broken: "its totals are out of range")
            }
            return totals
        }
    }

    func state() throws(IndexError) -> IndexState {
        try database.query { database in
            let state = try database.first("SELECT journal, applied, hand, clean FROM state") { row in
                IndexState(
                    position: IndexPosition(journal: try row.value(0), offset: try row.value(1)), hand: try row.value(2),
                    isClean: try row.value(3))
            }
            guard let state else { throw IndexError(broken: "it has no state") }
            guard state.position.offset >= 0 else { throw IndexError(broken: "its position is out of range") }
            return state
        }
    }

    /// The rows that a purge with this sequence covers; see ``PurgeQuery``.
    func rows(coveredBy scope: PurgeScope, before sequence: Int64) throws(IndexError) -> RemovedRows {
        try database.query { try PurgeQuery(scope, before: sequence).selectCovered(in: $0) }
    }

    // MARK: Changes

    /// Applies lines of the journal, in order, in one transaction.
    ///
    /// - Parameter position: The position to record: the journal is applied up to there. Nil leaves it.
    /// - Returns: What purges among the lines removed. The caller removes the files.
    func follow(_ lines: [JournalLine], to position: IndexPosition?) throws(IndexError) -> RemovedRows {
        try database.change { database in
            let update = IndexUpdate(in: database)
            var removed = RemovedRows()
            for line in lines { removed.add(try update.apply(line)) }
            if let position { try update.setPosition(position) }
            return removed
        }
    }

    /// Removes objects and the aliases that lead to them.
    func remove(_ objects: [ObjectRow]) throws(IndexError) {
        try database.change { try IndexUpdate(in: $0).delete(objects) }
    }

    /// Removes aliases of objects that the index does not have.
    func removeDanglingAliases() throws(IndexError) {
        try database.change { try IndexUpdate(in: $0).deleteDanglingAliases() }
    }

    /// Records that the index follows another journal up to this position.
    func move(to position: IndexPosition) throws(IndexError) {
        try database.change { try IndexUpdate(in: $0).setPosition(position) }
    }

    /// Records at which sequence the eviction hand stopped.
    func setHand(_ hand: Int64) throws(IndexError) {
        try database.change { try $0.run("UPDATE state SET hand = ?", [hand]) }
    }

    /// Records whether the cache was closed in order.
    func setClean(_ isClean: Bool) throws(IndexError) {
        try database.change { try $0.run("UPDATE state SET clean = ?", [isClean]) }
    }

    /// Makes all changes durable.
    ///
    /// - Parameter emptyingLog: Whether SQLite's log is emptied, too, so that the database is one file again.
    func flush(emptyingLog: Bool) throws(IndexError) {
        try database.checkpoint(emptyingLog: emptyingLog)
    }
}
