internal import GRDB

/// An object in the index.
struct ObjectRow: Sendable, Equatable {
    /// The sequence of its line in the journal; also its position in the eviction queue.
    let sequence: Int64
    let record: ObjectRecord
    /// The sequence of its latest upload; 0 if it was never uploaded. A purge of a source does not remove an uploaded object.
    var uploaded: Int64 = 0
}

/// An alias in the index, with its object.
struct AliasRow: Sendable, Equatable {
    /// The sequence of its line in the journal.
    let sequence: Int64
    let record: AliasRecord
    let object: ObjectRow
}

/// An alias that led to this object and now leads to another.
struct FormerAliasRow: Sendable, Equatable {
    let object: ObjectID
    let url: String
    /// The sequence of the journal's line that led to this object.
    let sequence: Int64
}

/// The totals of all objects.
struct IndexTotals: Sendable, Equatable {
    var objects: Int64 = 0
    var bytes: Int64 = 0

    mutating func subtract(_ object: ObjectRow) {
        objects = max(0, objects - 1)
        bytes = max(0, bytes - object.record.length)
    }
}

/// The journal that the index follows, and the position up to which it was applied.
struct IndexPosition: Sendable, Equatable {
    var journal: String
    var offset: Int64
}

/// What was removed by applying lines of the journal.
struct Removed: Sendable {
    /// Objects whose rows were removed; their files still exist.
    var objects: [ObjectRow] = []
    /// The number of removed aliases.
    var aliases: Int64 = 0
    /// The number of removed objects without an alias.
    var unaliased: Int64 = 0

    mutating func add(_ other: Removed) {
        objects += other.objects
        aliases += other.aliases
        unaliased += other.unaliased
    }
}

/// An error of the index: the message of SQLite, and whether the file itself is unusable.
struct IndexError: Error, CustomStringConvertible {
    let description: String
    /// Whether the file is not a database, is damaged or has another layout, so that it has to be rebuilt.
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
