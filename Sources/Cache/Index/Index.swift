internal import Foundation
internal import GRDB

/// What the journal says, in SQLite, for look-ups.
///
/// It follows the journal line by line, and records its position in the same transaction. After a crash, the rest of the journal
/// is applied again. Any number of threads may query while one changes. Every call may block: not for I/O threads.
final class Index: Sendable {
    static let fileName = "index.sqlite"

    private let database: IndexDatabase

    /// Opens the index, and creates an empty one if the file is missing.
    ///
    /// - Parameters:
    ///   - path: The database file.
    ///   - readers: The number of threads that query at the same time.
    init(path: String, readers: Int) throws(IndexError) {
        database = try IndexDatabase(path: path, readers: readers)
    }

    /// Waits for running queries and closes the database. Later calls fail.
    func close() throws(IndexError) {
        try database.close()
    }

    // MARK: Queries

    func aliasRow(_ key: AliasKey) throws(IndexError) -> AliasRow? {
        try database.query { database in
            let statement = try database.cachedStatement(
                sql: """
                    SELECT \(AliasRow.columns)
                    FROM aliases JOIN objects ON objects.id = aliases.object WHERE aliases.key = ?
                    """)
            return try Row.fetchOne(statement, arguments: [key.data]).map { try AliasRow($0) }
        }
    }

    func objectRow(_ id: ObjectID) throws(IndexError) -> ObjectRow? {
        try database.query { try ObjectRow.select(id, in: $0) }
    }

    /// The file extensions of all objects whose ids begin with the byte `first`.
    func extensions(ofObjectsIn first: UInt8) throws(IndexError) -> [ObjectID: String] {
        try database.query { database in
            let statement = try database.cachedStatement(sql: "SELECT id, extension FROM objects WHERE id >= ? AND id <= ?")
            let bounds: StatementArguments = [
                Data([first] + Array(repeating: 0, count: 31)), Data([first] + Array(repeating: 0xff, count: 31)),
            ]
            var extensions: [ObjectID: String] = [:]
            let rows = try Row.fetchCursor(statement, arguments: bounds)
            while let row = try rows.next() {
                let fileExtension: String = try row.checked(1)
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
            let statement = try database.cachedStatement(
                sql: "SELECT \(ObjectRow.columns) FROM objects WHERE sequence > ? ORDER BY sequence LIMIT ?")
            return try Row.fetchAll(statement, arguments: [sequence, limit]).map { try ObjectRow($0) }
        }
    }

    /// Up to `limit` aliases after `key`, in the order of their keys.
    func aliases(after key: AliasKey?, limit: Int) throws(IndexError) -> [AliasRow] {
        try database.query { database in
            let statement = try database.cachedStatement(
                sql: """
                    SELECT \(AliasRow.columns)
                    FROM aliases JOIN objects ON objects.id = aliases.object
                    WHERE aliases.key > ? ORDER BY aliases.key LIMIT ?
                    """)
            return try Row.fetchAll(statement, arguments: [key?.data ?? Data(), limit]).map { try AliasRow($0) }
        }
    }

    /// Up to `limit` former aliases after `last`, in the order of their objects and URLs.
    func formerAliases(after last: FormerAliasRow?, limit: Int) throws(IndexError) -> [FormerAliasRow] {
        try database.query { database in
            let statement = try database.cachedStatement(
                sql: """
                    SELECT object, url, sequence FROM former_aliases WHERE (object, url) > (?, ?) ORDER BY object, url LIMIT ?
                    """)
            let arguments: StatementArguments = [last?.object.data ?? Data(), last?.url ?? "", limit]
            return try Row.fetchAll(statement, arguments: arguments).map { try FormerAliasRow($0) }
        }
    }

    func totals() throws(IndexError) -> IndexTotals {
        try database.query { database in
            guard let row = try Row.fetchOne(database, sql: "SELECT objects, bytes FROM state") else {
                throw IndexError(broken: "it has no state")
            }
            let totals = IndexTotals(objects: try row.checked(0), bytes: try row.checked(1))
            guard totals.objects >= 0, (0...ObjectRecord.maxNumber).contains(totals.bytes) else {
                throw IndexError(broken: "its totals are out of range")
            }
            return totals
        }
    }

    func state() throws(IndexError) -> IndexState {
        try database.query { database in
            guard let row = try Row.fetchOne(database, sql: "SELECT journal, applied, hand, clean FROM state") else {
                throw IndexError(broken: "it has no state")
            }
            let position = IndexPosition(journal: try row.checked(0), offset: try row.checked(1))
            guard position.offset >= 0 else { throw IndexError(broken: "its position is out of range") }
            return IndexState(position: position, hand: try row.checked(2), isClean: try row.checked(3))
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
        try database.change { try $0.cachedStatement(sql: "UPDATE state SET hand = ?").execute(arguments: [hand]) }
    }

    /// Records whether the cache was closed in order.
    func setClean(_ isClean: Bool) throws(IndexError) {
        try database.change { try $0.cachedStatement(sql: "UPDATE state SET clean = ?").execute(arguments: [isClean]) }
    }

    /// Makes all changes durable.
    ///
    /// - Parameter emptyingLog: Whether SQLite's log is emptied, too, so that the database is one file again.
    func flush(emptyingLog: Bool) throws(IndexError) {
        try database.checkpoint(emptyingLog: emptyingLog)
    }
}
