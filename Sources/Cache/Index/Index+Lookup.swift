internal import Foundation
internal import GRDB

/// Questions to the index.
extension Index {
    func alias(_ key: AliasKey) throws(IndexError) -> AliasRow? {
        try read { database in
            let statement = try database.cachedStatement(
                sql: """
                    SELECT \(Self.aliasColumns), \(Self.objectColumns)
                    FROM aliases JOIN objects ON objects.id = aliases.object WHERE aliases.key = ?
                    """)
            return try Row.fetchOne(statement, arguments: [key.data]).map(Self.alias)
        }
    }

    func object(_ id: ObjectID) throws(IndexError) -> ObjectRow? {
        try read { try Self.object(id, in: $0) }
    }

    static func object(_ id: ObjectID, in database: Database) throws -> ObjectRow? {
        let statement = try database.cachedStatement(sql: "SELECT \(objectColumns) FROM objects WHERE id = ?")
        return try Row.fetchOne(statement, arguments: [id.data]).map { try object($0) }
    }

    /// The extensions of all objects whose ids begin with this byte.
    func extensions(ofObjectsIn first: UInt8) throws(IndexError) -> [ObjectID: String] {
        try read { database in
            let statement = try database.cachedStatement(sql: "SELECT id, extension FROM objects WHERE id >= ? AND id <= ?")
            let bounds: StatementArguments = [
                Data([first] + Array(repeating: 0, count: 31)), Data([first] + Array(repeating: 0xff, count: 31)),
            ]
            var extensions: [ObjectID: String] = [:]
            let rows = try Row.fetchCursor(statement, arguments: bounds)
            while let row = try rows.next() {
                extensions[try Self.name(row, 0)] = row[1]
            }
            return extensions
        }
    }

    /// Objects in the order of the eviction queue, those after `sequence`.
    func objects(after sequence: Int64, limit: Int) throws(IndexError) -> [ObjectRow] {
        try read { database in
            let statement = try database.cachedStatement(
                sql: """
                    SELECT \(Self.objectColumns) FROM objects WHERE sequence > ? ORDER BY sequence LIMIT ?
                    """)
            return try Row.fetchAll(statement, arguments: [sequence, limit]).map { try Self.object($0) }
        }
    }

    /// Aliases in the order of their keys, those after `key`.
    func aliases(after key: AliasKey?, limit: Int) throws(IndexError) -> [AliasRow] {
        try read { database in
            let statement = try database.cachedStatement(
                sql: """
                    SELECT \(Self.aliasColumns), \(Self.objectColumns)
                    FROM aliases JOIN objects ON objects.id = aliases.object
                    WHERE aliases.key > ? ORDER BY aliases.key LIMIT ?
                    """)
            return try Row.fetchAll(statement, arguments: [key?.data ?? Data(), limit]).map { try Self.alias($0) }
        }
    }

    /// Former aliases in the order of their objects and URLs, those after the given one.
    func formerAliases(after last: FormerAliasRow?, limit: Int) throws(IndexError) -> [FormerAliasRow] {
        try read { database in
            let statement = try database.cachedStatement(
                sql: """
                    SELECT object, url, sequence FROM former_aliases WHERE (object, url) > (?, ?) ORDER BY object, url LIMIT ?
                    """)
            let arguments: StatementArguments = [last?.object.data ?? Data(), last?.url ?? "", limit]
            return try Row.fetchAll(statement, arguments: arguments).map { row in
                FormerAliasRow(object: try Self.name(row, 0), url: row[1], sequence: row[2])
            }
        }
    }

    func totals() throws(IndexError) -> IndexTotals {
        try read { database in
            guard let row = try Row.fetchOne(database, sql: "SELECT objects, bytes FROM state") else {
                throw IndexError(broken: "no state")
            }
            return IndexTotals(objects: row[0], bytes: row[1])
        }
    }

    /// Up to where the index follows the journal, where the eviction hand stands, and whether the last server closed the
    /// cache in order.
    func state() throws(IndexError) -> (position: IndexPosition, hand: Int64, isClean: Bool) {
        try read { database in
            guard let row = try Row.fetchOne(database, sql: "SELECT journal, applied, hand, clean FROM state") else {
                throw IndexError(broken: "no state")
            }
            return (IndexPosition(journal: row[0], offset: row[1]), row[2], row[3])
        }
    }
}
