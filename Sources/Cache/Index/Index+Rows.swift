internal import Foundation
internal import GRDB

/// Between the tables' columns and the cache's values.
extension Index {
    static let objectColumns = columns(
        of: "objects", ["sequence", "id", "extension", "length", "content", "created", "facts"])
    static let aliasColumns = columns(of: "aliases", ["sequence", "key", "url", "etag", "modified", "fetched", "fresh"])

    private static func columns(of table: String, _ names: [String]) -> String {
        names.map { "\(table).\($0)" }.joined(separator: ", ")
    }

    /// A digest in one column.
    static func name<Name: DigestName>(_ row: Row, _ column: Int) throws -> Name {
        guard let name = Name(bytes: row[column] as Data) else { throw IndexError(broken: "a digest of the wrong length") }
        return name
    }

    /// The object in seven columns from `first` on, as ``objectColumns`` orders them.
    static func object(_ row: Row, from first: Int = 0) throws -> ObjectRow {
        ObjectRow(
            sequence: row[first],
            record: ObjectRecord(
                id: try name(row, first + 1), fileExtension: row[first + 2], length: row[first + 3],
                content: try name(row, first + 4), created: row[first + 5], facts: [UInt8](row[first + 6] as Data)))
    }

    /// The alias in seven columns, followed by its object.
    static func alias(_ row: Row) throws -> AliasRow {
        AliasRow(
            sequence: row[0],
            record: AliasRecord(
                key: try name(row, 1), sourceURL: row[2], validators: Validators(etag: row[3], lastModified: row[4]),
                fetchedAt: row[5], freshFor: row[6]),
            object: try object(row, from: 7))
    }
}

extension DigestName {
    var data: Data { Data(bytes) }
}
