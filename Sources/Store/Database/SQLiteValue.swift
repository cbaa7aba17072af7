internal import CSystem

/// A type that can be stored in a column. Each value uses one of SQLite's storage classes and is never converted to another.
package protocol SQLiteValue {
    /// Binds the value to a parameter of a statement, numbered from 1. Returns SQLite's result code.
    func bind(to statement: SQLiteStatement, at index: Int32) -> Int32

    /// Reads the value in a column, numbered from 0; nil for a value of another storage class or out of range.
    static func read(_ row: SQLiteRow, _ column: Int32) -> Self?
}

/// Stored as INTEGER.
extension Int64: SQLiteValue {
    package func bind(to statement: SQLiteStatement, at index: Int32) -> Int32 {
        sqlite3_bind_int64(statement.handle, index, self)
    }

    package static func read(_ row: SQLiteRow, _ column: Int32) -> Int64? {
        row.storageClass(column) == SQLITE_INTEGER ? sqlite3_column_int64(row.handle, column) : nil
    }
}

/// Stored as INTEGER.
extension Int: SQLiteValue {
    package func bind(to statement: SQLiteStatement, at index: Int32) -> Int32 { Int64(self).bind(to: statement, at: index) }

    package static func read(_ row: SQLiteRow, _ column: Int32) -> Int? { Int64.read(row, column).map { Int($0) } }
}

/// Stored as INTEGER, 0 or 1.
extension Bool: SQLiteValue {
    package func bind(to statement: SQLiteStatement, at index: Int32) -> Int32 {
        Int64(self ? 1 : 0).bind(to: statement, at: index)
    }

    package static func read(_ row: SQLiteRow, _ column: Int32) -> Bool? {
        switch Int64.read(row, column) {
        case 0: false
        case 1: true
        default: nil
        }
    }
}

/// Stored as TEXT in UTF-8.
extension String: SQLiteValue {
    package func bind(to statement: SQLiteStatement, at index: Int32) -> Int32 {
        var text = self
        return text.withUTF8 { bytes in
            // SQLite would bind a null pointer as NULL.
            var none: UInt8 = 0
            return withUnsafePointer(to: &none) { empty in
                (bytes.baseAddress ?? empty).withMemoryRebound(to: CChar.self, capacity: bytes.count) {
                    csqlite_bind_text(statement.handle, index, $0, UInt64(bytes.count))
                }
            }
        }
    }

    package static func read(_ row: SQLiteRow, _ column: Int32) -> String? {
        guard row.storageClass(column) == SQLITE_TEXT, let text = sqlite3_column_text(row.handle, column) else { return nil }
        let bytes = UnsafeBufferPointer(start: text, count: Int(sqlite3_column_bytes(row.handle, column)))
        return String(validating: bytes, as: UTF8.self)
    }
}

/// Stored as BLOB.
extension [UInt8]: SQLiteValue {
    package func bind(to statement: SQLiteStatement, at index: Int32) -> Int32 {
        csqlite_bind_blob(statement.handle, index, self, UInt64(count))
    }

    package static func read(_ row: SQLiteRow, _ column: Int32) -> [UInt8]? {
        guard row.storageClass(column) == SQLITE_BLOB else { return nil }
        // An empty blob has no address.
        guard let bytes = sqlite3_column_blob(row.handle, column) else { return [] }
        return [UInt8](UnsafeRawBufferPointer(start: bytes, count: Int(sqlite3_column_bytes(row.handle, column))))
    }
}

/// Stored as NULL if it is nil.
extension Optional: SQLiteValue where Wrapped: SQLiteValue {
    package func bind(to statement: SQLiteStatement, at index: Int32) -> Int32 {
        self?.bind(to: statement, at: index) ?? sqlite3_bind_null(statement.handle, index)
    }

    package static func read(_ row: SQLiteRow, _ column: Int32) -> Wrapped?? {
        if row.storageClass(column) == SQLITE_NULL { return .some(nil) }
        return Wrapped.read(row, column).map { .some($0) }
    }
}
