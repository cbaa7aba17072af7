internal import CSystem

/// A prepared statement, owned and cached by its connection.
package struct SQLiteStatement {
    let handle: OpaquePointer

    init(_ sql: String, _ connection: OpaquePointer) throws(LedgerError) {
        var handle: OpaquePointer?
        let code = sqlite3_prepare_v3(connection, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &handle, nil)
        guard code == SQLITE_OK, let handle else { throw LedgerError(code, connection) }
        self.handle = handle
    }

    func bind(_ values: [any SQLiteValue]) throws(LedgerError) {
        precondition(values.count == sqlite3_bind_parameter_count(handle), "the number of values is not that of the parameters")
        for (index, value) in values.enumerated() {
            let code = value.bind(to: self, at: Int32(index + 1))
            guard code == SQLITE_OK else { throw LedgerError(code, sqlite3_db_handle(handle)) }
        }
    }

    /// Advances to the next row; nil after the last row.
    func step() throws(LedgerError) -> SQLiteRow? {
        switch sqlite3_step(handle) {
        case SQLITE_ROW: SQLiteRow(handle: handle)
        case SQLITE_DONE: nil
        case let code: throw LedgerError(code, sqlite3_db_handle(handle))
        }
    }

    /// Resets the statement, which then holds no locks and no bound values.
    func reset() {
        sqlite3_reset(handle)
        sqlite3_clear_bindings(handle)
    }
}

/// A result row, valid only within the closure that receives it.
package struct SQLiteRow {
    let handle: OpaquePointer

    /// The value in a column, numbered from 0.
    ///
    /// - Throws: If the value has another storage class or is out of range.
    package func value<Value: SQLiteValue>(_ column: Int) throws(LedgerError) -> Value {
        guard let value = Value.read(self, Int32(column)) else {
            throw LedgerError(.damage, "SQLite: the value in column \(column) is not of type \(Value.self)")
        }
        return value
    }

    /// The integer in a column, numbered from 0.
    ///
    /// - Parameter range: By default that of times, sizes and counts, whose sums cannot overflow.
    /// - Throws: If the value has another storage class or is out of range.
    package func number<Number: SQLiteValue & BinaryInteger>(
        _ column: Int, in range: ClosedRange<Int64> = -(1 << 53)...(1 << 53)
    ) throws(LedgerError) -> Number {
        let number: Number = try value(column)
        guard range.contains(Int64(number)) else {
            throw LedgerError(.damage, "SQLite: the number in column \(column) is out of range")
        }
        return number
    }

    /// The position of a row or an event in an order, from which others count on.
    func sequence(_ column: Int) throws(LedgerError) -> Int64 { try number(column, in: -(1 << 60)...(1 << 60)) }

    func storageClass(_ column: Int32) -> Int32 {
        sqlite3_column_type(handle, column)
    }
}

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
