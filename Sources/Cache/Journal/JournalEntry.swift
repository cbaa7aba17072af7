/// One thing that happened to the cache.
enum JournalEntry: Sendable, Equatable {
    /// A rendition's file was stored.
    case object(ObjectRecord)
    /// An alias leads to an object now, or was renewed.
    case alias(AliasRecord, ObjectID)
    /// An alias of this URL once led to an object that is still stored. Only written when the journal is rewritten: else the
    /// alias's own lines say so.
    case formerAlias(url: String, ObjectID)
    /// A client uploaded the source of an object that is stored: a purge of a URL with the same bytes leaves it.
    case upload(ObjectID)
    /// What came before and is covered counts no more.
    case purge(PurgeScope)
}

/// An entry with its place in the order of all entries.
struct JournalLine: Sendable, Equatable {
    /// Grows from line to line, also when the journal is rewritten.
    let sequence: Int64
    let entry: JournalEntry
}
