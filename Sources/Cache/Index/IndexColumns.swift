internal import SQLite

// Conversion of columns to values.
//
// A damaged index may hold anything in any column, so the type and the range of each value are checked. A wrong value throws an
// ``IndexError`` of a broken index, which is then rebuilt from the journal.

extension ObjectRow {
    /// The columns that ``init(_:from:)`` expects, in their order.
    static let columns = columnList(
        "objects", ["sequence", "id", "extension", "length", "content", "created", "facts", "uploaded"])

    /// The object in eight columns from `first` on.
    init(_ row: SQLiteRow, from first: Int = 0) throws {
        let record = ObjectRecord(
            id: try row.digest(first + 1), fileExtension: try row.value(first + 2), length: try row.value(first + 3),
            content: try row.digest(first + 4), created: try row.value(first + 5),
            facts: try row.value(first + 6))
        guard record.isInRange else { throw IndexError(broken: "an object has values out of range") }
        self.init(sequence: try row.value(first), record: record, uploaded: try row.value(first + 7))
    }

    static func select(_ id: ObjectID, in database: SQLiteConnection) throws -> ObjectRow? {
        try database.first("SELECT \(columns) FROM objects WHERE id = ?", [id.bytes]) { try ObjectRow($0) }
    }
}

extension AliasRow {
    /// The columns that ``init(_:)`` expects, in their order.
    static let columns =
        columnList("aliases", ["sequence", "key", "url", "etag", "modified", "fetched", "fresh"]) + ", " + ObjectRow.columns

    /// The alias in seven columns, followed by its object.
    init(_ row: SQLiteRow) throws {
        let record = AliasRecord(
            key: try row.digest(1), sourceURL: try row.value(2),
            validators: Validators(etag: try row.value(3), lastModified: try row.value(4)),
            fetchedAt: try row.value(5), freshFor: try row.value(6))
        guard record.isInRange else { throw IndexError(broken: "an alias has values out of range") }
        self.init(sequence: try row.value(0), record: record, object: try ObjectRow(row, from: 7))
    }
}

extension FormerAliasRow {
    /// The former alias in the columns `object`, `url` and `sequence`.
    init(_ row: SQLiteRow) throws {
        self.init(object: try row.digest(0), url: try row.value(1), sequence: try row.value(2))
    }
}

extension SQLiteRow {
    /// The digest in one column.
    func digest<Name: DigestName>(_ column: Int) throws -> Name {
        guard let name = Name(bytes: try value(column) as [UInt8]) else {
            throw IndexError(broken: "a digest has the wrong length")
        }
        return name
    }
}

private func columnList(_ table: String, _ names: [String]) -> String {
    names.map { "\(table).\($0)" }.joined(separator: ", ")
}
