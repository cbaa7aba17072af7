internal import Synchronization

/// What the cache holds and has done since it was opened; a snapshot, each number right by itself.
package struct CacheStatistics: Sendable, Equatable {
    /// Renditions stored.
    package var objects: Int64 = 0
    /// Bytes of renditions stored.
    package var bytes: Int64 = 0
    /// ``CacheConfiguration/maxBytes``.
    package var limitBytes: Int64 = 0
    /// Look-ups answered from memory.
    package var hotHits: Int64 = 0
    /// Look-ups answered from index and disk.
    package var diskHits: Int64 = 0
    /// Look-ups on index and disk that found nothing.
    package var misses: Int64 = 0
    /// Look-ups refused because too many waited; each was a miss for its caller.
    package var refused: Int64 = 0
    /// Renditions published, and bytes of these.
    package var published: Int64 = 0
    package var publishedBytes: Int64 = 0
    /// Renditions given back unstored: purged meanwhile, disk full, read-only.
    package var unstored: Int64 = 0
    /// Renditions removed to make room, and bytes of these.
    package var evictions: Int64 = 0
    package var evictedBytes: Int64 = 0
    /// Purges done, and the renditions they removed.
    package var purges: Int64 = 0
    package var purged: Int64 = 0
    /// Stored files that did not match their record and were removed.
    package var corrupt: Int64 = 0
    /// Files without a record, removed.
    package var orphans: Int64 = 0
    /// Times the index was made anew from the files.
    package var rebuilds: Int64 = 0
    /// True while the index is being brought up to date with the files; look-ups may miss what is there.
    package var isRebuilding = false
    /// False while the disk refuses new renditions.
    package var isStoring = true

    /// Look-ups answered, from memory or disk.
    package var hits: Int64 { hotHits + diskHits }
}

/// What ``CacheStatistics`` counts beside the hot tables' hits.
final class CacheCounters: Sendable {
    let diskHits = Atomic<Int64>(0)
    let misses = Atomic<Int64>(0)
    let refused = Atomic<Int64>(0)
    let published = Atomic<Int64>(0)
    let publishedBytes = Atomic<Int64>(0)
    let unstored = Atomic<Int64>(0)
    let evictions = Atomic<Int64>(0)
    let evictedBytes = Atomic<Int64>(0)
    let purges = Atomic<Int64>(0)
    let purged = Atomic<Int64>(0)
    let corrupt = Atomic<Int64>(0)
    let orphans = Atomic<Int64>(0)
    let isStoring = Atomic(true)
}

extension Atomic where Value == Int64 {
    /// Counts; no other memory depends on it.
    func count(_ amount: Int64 = 1) {
        add(amount, ordering: .relaxed)
    }

    var current: Int64 { load(ordering: .relaxed) }
}
