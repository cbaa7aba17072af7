internal import GRDB

/// The index failed: what SQLite says, and whether the file itself is the trouble.
struct IndexError: Error, CustomStringConvertible {
    let description: String
    /// The file is no database, is damaged, or has another layout: it must be made anew.
    let isBroken: Bool

    init(_ error: any Error) {
        if let error = error as? IndexError {
            self = error
            return
        }
        description = "\(error)"
        guard let error = error as? DatabaseError else {
            isBroken = false
            return
        }
        let broken: [ResultCode] = [.SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_ERROR, .SQLITE_FORMAT, .SQLITE_SCHEMA]
        isBroken = broken.contains(error.resultCode.primaryResultCode)
    }

    init(broken description: String) {
        self.description = description
        isBroken = true
    }
}
