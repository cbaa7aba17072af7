internal import Foundation
internal import GRDB

/// Conversion between columns and values.
///
/// A damaged index may hold anything in any column, so every value is decoded with a check of its type and its range. A wrong
/// one is an ``IndexError`` of a broken index, which is then rebuilt from the journal.
extension Index {
    static let objectColumns = columns(
        of: "objects", ["sequence", "id", "extension", "length", "content", "created", "facts", "uploaded"])
    static let aliasColumns = columns(of: "aliases", ["sequence", "key", "url", "etag", "modified", "fetched", "fresh"])

    private static func columns(of table: String, _ names: [String]) -> String {
        names.map { "\(table).\($0)" }.joined(separator: ", ")
    }

    /// The value in one column.
    static func value<Value: DatabaseValueConvertible & StatementColumnConvertible>(
        _ row: Row, _ column: Int
    ) throws -> Value {
        do {
            return try row.decode(Value.self, atIndex: column)
        } catch {
            throw IndexError(broken: "a value of the wrong type")
        }
    }

    /// The digest in one column.
    static func name<Name: DigestName>(_ row: Row, _ column: Int) throws -> Name {
        guard let name = Name(bytes: try value(row, column) as Data) else {
            throw IndexError(broken: "a digest of the wrong length")
        }
        return name
    }

    /// The object in eight columns from `first` on, in the order of ``objectColumns``.
    static func object(_ row: Row, from first: Int = 0) throws -> ObjectRow {
        let record = ObjectRecord(
            id: try name(row, first + 1), fileExtension: try value(row, first + 2), length: try value(row, first + 3),
            content: try name(row, first + 4), created: try value(row, first + 5),
            facts: [UInt8](try value(row, first + 6) as Data))
        guard record.isInRange else { throw IndexError(broken: "an object with values out of range") }
        return ObjectRow(sequence: try value(row, first), record: record, uploaded: try value(row, first + 7))
    }

    /// The alias in seven columns, followed by its object.
    static func alias(_ row: Row) throws -> AliasRow {
        let record = AliasRecord(
            key: try name(row, 1), sourceURL: try value(row, 2),
            validators: Validators(etag: try value(row, 3), lastModified: try value(row, 4)), fetchedAt: try value(row, 5),
            freshFor: try value(row, 6))
        guard record.isInRange else { throw IndexError(broken: "an alias with values out of range") }
        return AliasRow(sequence: try value(row, 0), record: record, object: try object(row, from: 7))
    }
}

extension DigestName {
    var data: Data { Data(bytes) }
}
