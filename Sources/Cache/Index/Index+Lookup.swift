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
                let fileExtension: String = try Self.value(row, 1)
                guard ObjectRecord.isExtension(fileExtension) else { throw IndexError(broken: "an extension out of range") }
                extensions[try Self.name(row, 0)] = fileExtension
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
                FormerAliasRow(
                    object: try Self.name(row, 0), url: try Self.value(row, 1), sequence: try Self.value(row, 2))
            }
        }
    }

    func totals() throws(IndexError) -> IndexTotals {
        try read { database in
            guard let row = try Row.fetchOne(database, sql: "SELECT objects, bytes FROM state") else {
                throw IndexError(broken: "no state")
            }
            let totals = IndexTotals(objects: try Self.value(row, 0), bytes: try Self.value(row, 1))
            guard totals.objects >= 0, (0...ObjectRecord.maxNumber).contains(totals.bytes) else {
                throw IndexError(broken: "totals out of range")
            }
            return totals
        }
    }

    /// Up to where the index follows the journal, where the eviction hand stands, and whether the last server closed the
    /// cache in order.
    func state() throws(IndexError) -> (position: IndexPosition, hand: Int64, isClean: Bool) {
        try read { database in
            guard let row = try Row.fetchOne(database, sql: "SELECT journal, applied, hand, clean FROM state") else {
                throw IndexError(broken: "no state")
            }
            let position = IndexPosition(journal: try Self.value(row, 0), offset: try Self.value(row, 1))
            guard position.offset >= 0 else { throw IndexError(broken: "a position out of range") }
            return (position, try Self.value(row, 2), try Self.value(row, 3))
        }
    }
}
