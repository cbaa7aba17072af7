package import SystemIO

/// The contents of the cache and its counters since it was opened. Each value is correct by itself; together they are not a
/// consistent snapshot.
package struct CacheStatistics: Sendable, Equatable {
    /// Stored renditions.
    package var objects: Int64 = 0
    /// Their bytes.
    package var bytes: Int64 = 0
    /// URLs that lead to them.
    package var aliases: Int64 = 0
    /// The disk space of these URLs, in bytes.
    package var aliasBytes: Int64 = 0
    /// The disk space that counts towards the limit, in bytes: the blocks and rows of renditions, and their URLs.
    package var diskBytes: Int64 = 0
    package var limitBytes: Int64 = 0
    /// Lookups that found a rendition in memory.
    package var hotHits: Int64 = 0
    /// Lookups that found a rendition on disk.
    package var diskHits: Int64 = 0
    /// Lookups on disk that found none.
    package var misses: Int64 = 0
    /// Lookups refused because too many were waiting. Each was a miss for its caller.
    package var refused: Int64 = 0
    package var published: Int64 = 0
    /// Renditions and aliases that were not stored, because they were purged meanwhile or the disk refused them.
    package var unstored: Int64 = 0
    package var evictions: Int64 = 0
    /// Their bytes.
    package var evictedBytes: Int64 = 0
    package var purges: Int64 = 0
    package var purged: Int64 = 0
    /// Stored files that did not match their record and were removed.
    package var corrupt: Int64 = 0
    /// Files without a record that were removed.
    package var orphans: Int64 = 0
    /// Why new renditions are not stored, or why the last one was not; nil if they are stored.
    package var refusal: UnstoredReason?

    package var isStoring: Bool { refusal == nil }

    package var hits: Int64 { hotHits + diskHits }
}

/// The free space of the cache's file system.
package struct CacheSpace: Sendable {
    package let disk: DiskSpace
    package let minFreeBytes: Int64

    /// Why this space does not suffice to store renditions; nil if it does.
    package var refusal: UnstoredReason? {
        if disk.freeBytes <= 0 { return .diskFull }
        return disk.freeBytes < minFreeBytes ? .lowSpace : nil
    }
}
