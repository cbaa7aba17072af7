internal import CSQLite

/// An error of SQLite, or a value that has another type than the one that was asked for.
package struct SQLiteError: Error, CustomStringConvertible {
    /// The primary result code: https://www.sqlite.org/rescode.html
    private let code: Int32
    package let description: String

    /// The latest error of a connection, if it has one.
    init(_ code: Int32, _ connection: OpaquePointer?) {
        self.code = code & 0xff
        let message = connection.map { String(cString: sqlite3_errmsg($0)) } ?? String(cString: sqlite3_errstr(code))
        description = "SQLite: \(message) (\(code))"
    }

    /// A value in column `column` that is not of type `type`.
    init(column: Int, isNot type: Any.Type) {
        code = SQLITE_MISMATCH
        description = "SQLite: the value in column \(column) is not of type \(type)"
    }

    /// Whether the file is not a database, is damaged, or has another schema or other values than were asked for.
    package var isCorruption: Bool {
        [SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_ERROR, SQLITE_FORMAT, SQLITE_SCHEMA, SQLITE_MISMATCH].contains(code)
    }
}
