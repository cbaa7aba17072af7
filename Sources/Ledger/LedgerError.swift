/// An error of the ledger: the message of SQLite, and what it means for the caller.
package struct LedgerError: Error, CustomStringConvertible {
    package enum Kind: Sendable {
        /// The file is not a database, is damaged, or has values that no owner has written.
        case damage
        /// The disk or a quota of it is full.
        case fullDisk
        /// The file system is not writable.
        case readOnly
        /// ``Ledger/close()`` was called.
        case closed
        /// Another error, such as one of the disk, which may pass.
        case failure
    }

    package let kind: Kind
    package let description: String

    package init(_ kind: Kind, _ description: String) {
        self.kind = kind
        self.description = description
    }

    init(_ error: any Error) {
        if let error = error as? LedgerError {
            self = error
            return
        }
        let sqlite = error as? SQLiteError
        let kind: Kind =
            if sqlite?.isFullDisk == true {
                .fullDisk
            } else if sqlite?.isReadOnly == true {
                .readOnly
            } else if sqlite?.isCorruption == true {
                .damage
            } else {
                .failure
            }
        self.init(kind, "\(error)")
    }
}
