/// An object as the index knows it.
struct ObjectRow: Sendable, Equatable {
    /// Of the journal's line that it comes from; also its place in the eviction queue.
    let sequence: Int64
    let record: ObjectRecord
    /// The sequence of its latest upload; 0 if it was never uploaded. A purge of a source does not remove an uploaded object.
    var uploaded: Int64 = 0
}

/// An alias as the index knows it, with its object.
struct AliasRow: Sendable, Equatable {
    /// Of the journal's line that it comes from.
    let sequence: Int64
    let record: AliasRecord
    let object: ObjectRow
}

/// An alias that led to this object once and leads to another now.
struct FormerAliasRow: Sendable, Equatable {
    let object: ObjectID
    let url: String
    /// Of the journal's line that led to this object.
    let sequence: Int64
}

/// What the index holds in all.
struct IndexTotals: Sendable, Equatable {
    var objects: Int64 = 0
    var bytes: Int64 = 0

    mutating func subtract(_ object: ObjectRow) {
        objects = max(0, objects - 1)
        bytes = max(0, bytes - object.record.length)
    }
}

/// Up to where the index has followed which journal.
struct IndexPosition: Sendable, Equatable {
    var journal: String
    var offset: Int64
}

/// What applying lines of the journal removed.
struct Removed: Sendable {
    /// Objects whose rows are gone; their files are still there.
    var objects: [ObjectRow] = []
    /// Aliases gone.
    var aliases: Int64 = 0
    /// Objects gone that no alias led to.
    var unaliased: Int64 = 0

    mutating func add(_ other: Removed) {
        objects += other.objects
        aliases += other.aliases
        unaliased += other.unaliased
    }
}
