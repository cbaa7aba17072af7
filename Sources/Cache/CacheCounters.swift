internal import Synchronization

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
