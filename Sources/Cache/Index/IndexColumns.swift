internal import Foundation
internal import GRDB

// Conversion of columns to values.
//
// A damaged index may hold anything in any column, so the type and the range of each value are checked. A wrong value throws an
// ``IndexError`` of a broken index, which is then rebuilt from the journal.

extension ObjectRow {
    /// The columns that ``init(_:from:)`` expects, in their order.
    static let columns = columnList(
        "objects", ["sequence", "id", "extension", "length", "content", "created", "facts", "uploaded"])

    /// The object in eight columns from `first` on.
    init(_ row: Row, from first: Int = 0) throws {
        let record = ObjectRecord(
            id: try row.digest(first + 1), fileExtension: try row.checked(first + 2), length: try row.checked(first + 3),
            content: try row.digest(first + 4), created: try row.checked(first + 5),
            facts: [UInt8](try row.checked(first + 6) as Data))
        guard record.isInRange else { throw IndexError(broken: "an object has values out of range") }
        self.init(sequence: try row.checked(first), record: record, uploaded: try row.checked(first + 7))
    }

    static func select(_ id: ObjectID, in database: Database) throws -> ObjectRow? {
        let statement = try database.cachedStatement(sql: "SELECT \(columns) FROM objects WHERE id = ?")
        return try Row.fetchOne(statement, arguments: [id.data]).map { try ObjectRow($0) }
    }
}

extension AliasRow {
    /// The columns that ``init(_:)`` expects, in their order.
    static let columns =
        columnList("aliases", ["sequence", "key", "url", "etag", "modified", "fetched", "fresh"]) + ", " + ObjectRow.columns

    /// The alias in seven columns, followed by its object.
    init(_ row: Row) throws {
        let record = AliasRecord(
            key: try row.digest(1), sourceURL: try row.checked(2),
            validators: Validators(etag: try row.checked(3), lastModified: try row.checked(4)),
            fetchedAt: try row.checked(5), freshFor: try row.checked(6))
        guard record.isInRange else { throw IndexError(broken: "an alias has values out of range") }
        self.init(sequence: try row.checked(0), record: record, object: try ObjectRow(row, from: 7))
    }
}

extension FormerAliasRow {
    /// The former alias in the columns `object`, `url` and `sequence`.
    init(_ row: Row) throws {
        self.init(object: try row.digest(0), url: try row.checked(1), sequence: try row.checked(2))
    }
}

extension Row {
    /// The value in one column.
    func checked<Value: DatabaseValueConvertible & StatementColumnConvertible>(_ column: Int) throws -> Value {
        do {
            return try decode(Value.self, atIndex: column)
        } catch {
            throw IndexError(broken: "a value has the wrong type")
        }
    }

    /// The digest in one column.
    func digest<Name: DigestName>(_ column: Int) throws -> Name {
        guard let name = Name(bytes: try checked(column) as Data) else {
            throw IndexError(broken: "a digest has the wrong length")
        }
        return name
    }
}

extension DigestName {
    /// The 32 bytes as an SQL argument.
    var data: Data { Data(bytes) }
}

private func columnList(_ table: String, _ names: [String]) -> String {
    names.map { "\(table).\($0)" }.joined(separator: ", ")
}
