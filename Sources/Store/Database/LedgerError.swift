internal import CSystem
internal import Glibc

/// An error of the ledger: SQLite's message and its meaning for the caller.
package struct LedgerError: Error, CustomStringConvertible {
    package enum Kind: Sendable {
        /// The file is not a database, is damaged, or contains a schema or values that no owner wrote.
        case damage
        /// The disk or a disk quota is full.
        case fullDisk
        /// The file system or the file is not writable.
        case readOnly
        /// ``Ledger/close()`` was called.
        case closed
        /// Another error, possibly transient, such as a disk error.
        case failure
    }

    package let kind: Kind
    package let description: String
    /// Whether a system call failed, so that it is unknown how much of the write-ahead log would survive a power loss.
    let isFailedCall: Bool

    package init(_ kind: Kind, _ description: String) {
        (self.kind, self.description, isFailedCall) = (kind, description, false)
    }

    /// Wraps an error thrown in a transaction, unless it is already a ledger error.
    init(_ error: any Error) {
        self = error as? LedgerError ?? LedgerError(.failure, "\(error)")
    }

    /// The latest error of a connection, or `code` alone if there is no connection.
    ///
    /// - Parameter code: The result code: https://www.sqlite.org/rescode.html
    init(_ code: Int32, _ connection: OpaquePointer?) {
        let primary = code & 0xff
        let cause = connection.map { Self.systemError(primary, $0) } ?? 0
        let message = connection.map { String(cString: sqlite3_errmsg($0)) } ?? String(cString: sqlite3_errstr(code))
        description = "SQLite: \(message) (\(code)\(cause == 0 ? "" : ", \(String(cString: strerror(cause)))"))"
        isFailedCall = [SQLITE_IOERR, SQLITE_FULL].contains(primary)
        kind =
            switch primary {
            case _ where primary == SQLITE_FULL || [ENOSPC, EDQUOT].contains(cause): .fullDisk
            case _ where primary == SQLITE_READONLY || cause == EROFS: .readOnly
            case SQLITE_CORRUPT where cause != 0: .failure
            case SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_ERROR, SQLITE_FORMAT, SQLITE_SCHEMA, SQLITE_MISMATCH: .damage
            default: .failure
            }
    }

    /// The `errno` of the failed system call; 0 if there is none.
    private static func systemError(_ primary: Int32, _ connection: OpaquePointer) -> Int32 {
        switch primary {
        case SQLITE_IOERR, SQLITE_CANTOPEN: sqlite3_system_errno(connection)
        // SQLite calls a page damaged that the disk could not read, too.
        case SQLITE_CORRUPT: csqlite_read_error(connection)
        default: 0
        }
    }
}
