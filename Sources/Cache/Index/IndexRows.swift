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

/// The number and the bytes of all objects.
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

/// What the index records besides aliases and objects.
struct IndexState: Sendable, Equatable {
    let position: IndexPosition
    /// The sequence at which the eviction hand stopped.
    let hand: Int64
    /// Whether the last server closed the cache in order.
    let isClean: Bool
}

/// Rows that were removed.
struct RemovedRows: Sendable, Equatable {
    /// The removed objects. Their files still exist.
    var objects: [ObjectRow] = []
    /// The number of removed aliases.
    var aliases: Int64 = 0
    /// The number of removed objects without an alias.
    var unaliased: Int64 = 0

    mutating func add(_ other: RemovedRows) {
        objects += other.objects
        aliases += other.aliases
        unaliased += other.unaliased
    }
}
