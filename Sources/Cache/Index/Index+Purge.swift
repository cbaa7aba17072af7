internal import Foundation
internal import GRDB

/// What a purge covers.
extension Index {
    /// The aliases a purge covers that are older than it, and the objects they lead or led to, those that no other alias
    /// leads to and that were not uploaded; changes nothing.
    func covered(by scope: PurgeScope, before sequence: Int64) throws(IndexError) -> Removed {
        try read { try Self.covered(by: scope, before: sequence, in: $0) }
    }

    /// Removes what ``covered(by:before:)`` gives.
    static func purge(_ scope: PurgeScope, before sequence: Int64, in database: Database) throws -> Removed {
        let covered = try covered(by: scope, before: sequence, in: database)
        let (condition, arguments) = condition(scope, before: sequence)
        try database.execute(sql: "DELETE FROM aliases WHERE \(condition)", arguments: arguments)
        try database.execute(sql: "DELETE FROM former_aliases WHERE \(condition)", arguments: arguments)
        let remove = try database.cachedStatement(sql: "DELETE FROM objects WHERE sequence = ?")
        for object in covered.objects { try remove.execute(arguments: [object.sequence]) }
        return covered
    }

    private static func covered(by scope: PurgeScope, before sequence: Int64, in database: Database) throws -> Removed {
        let (condition, arguments) = condition(scope, before: sequence)
        var removed = Removed()
        removed.aliases =
            try Int64.fetchOne(
                database, sql: "SELECT COUNT(*) FROM aliases WHERE \(condition)", arguments: arguments) ?? 0
        switch scope {
        case .all:
            let unaliased = "SELECT COUNT(*) FROM objects WHERE sequence < ? AND id NOT IN (SELECT object FROM aliases)"
            removed.unaliased = try Int64.fetchOne(database, sql: unaliased, arguments: [sequence]) ?? 0
            removed.objects = try objects(database, "sequence < ?", [sequence])
            return removed
        case .object(let id):
            removed.objects = try objects(database, "sequence < ? AND id = ?", [sequence, id.data])
            if removed.aliases == 0 { removed.unaliased = Int64(removed.objects.count) }
            return removed
        case .url, .prefix:
            break
        }
        removed.objects = try objects(
            database,
            """
            sequence < ? AND uploaded = 0 AND id IN (
                SELECT object FROM aliases WHERE \(condition) UNION SELECT object FROM former_aliases WHERE \(condition))
            AND NOT EXISTS (SELECT 1 FROM aliases WHERE aliases.object = objects.id AND NOT (\(condition)))
            """,
            [sequence] + arguments + arguments + arguments)
        return removed
    }

    private static func objects(
        _ database: Database, _ condition: String, _ arguments: StatementArguments
    ) throws -> [ObjectRow] {
        try Row.fetchAll(database, sql: "SELECT \(objectColumns) FROM objects WHERE \(condition)", arguments: arguments)
            .map { try object($0) }
    }

    /// Which aliases are covered, as SQL about the columns that both tables of aliases have.
    private static func condition(_ scope: PurgeScope, before sequence: Int64) -> (String, StatementArguments) {
        switch scope {
        case .all: ("sequence < ?", [sequence])
        case .object(let id): ("object = ? AND sequence < ?", [id.data, sequence])
        case .url(let url): ("url = ? AND sequence < ?", [url, sequence])
        // The first comparison is for the index of URLs; the second is of bytes, where substr() of text would count
        // characters.
        case .prefix(let prefix):
            (
                "url >= ? AND substr(CAST(url AS BLOB), 1, ?) = ? AND sequence < ?",
                [prefix, prefix.utf8.count, Data(prefix.utf8), sequence]
            )
        }
    }
}
