internal import CSystem
internal import Glibc

/// An error of SQLite, or a value that has another type than the one that was asked for.
package struct SQLiteError: Error, CustomStringConvertible {
    /// The primary result code: https://www.sqlite.org/rescode.html
    private let code: Int32
    /// The value of `errno` of the system call that failed; 0 without one.
    private let systemCode: Int32
    package let description: String

    /// The latest error of a connection, if it has one.
    init(_ code: Int32, _ connection: OpaquePointer?) {
        self.code = code & 0xff
        systemCode = [SQLITE_IOERR, SQLITE_CANTOPEN].contains(code & 0xff) ? connection.map(sqlite3_system_errno) ?? 0 : 0
        let message = connection.map { String(cString: sqlite3_errmsg($0)) } ?? String(cString: sqlite3_errstr(code))
        let cause = systemCode == 0 ? "" : ", \(String(cString: strerror(systemCode)))"
        description = "SQLite: \(message) (\(code)\(cause))"
    }

    /// A value in column `column` that is not of type `type`.
    init(column: Int, isNot type: Any.Type) {
        code = SQLITE_MISMATCH
        systemCode = 0
        description = "SQLite: the value in column \(column) is not of type \(type)"
    }

    /// Whether the file is not a database, is damaged, or has another schema or other values than were asked for.
    package var isCorruption: Bool {
        [SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_ERROR, SQLITE_FORMAT, SQLITE_SCHEMA, SQLITE_MISMATCH].contains(code)
    }

    /// Whether the disk or a quota of it is full.
    package var isFullDisk: Bool { code == SQLITE_FULL || [ENOSPC, EDQUOT].contains(systemCode) }

    /// Whether the file system or the file is not writable.
    package var isReadOnly: Bool { code == SQLITE_READONLY || systemCode == EROFS }

    /// Whether a system call failed, so that it is unknown how much of the write-ahead log would survive a power loss.
    var isFailedCall: Bool { [SQLITE_IOERR, SQLITE_FULL].contains(code) }
}
