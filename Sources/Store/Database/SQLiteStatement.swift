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
