/// Evicts objects to keep the cache within its size and the disk within its free space. Every call may block.
struct Evictor: Sendable {
    private let context: CacheContext

    init(_ context: CacheContext) {
        self.context = context
    }

    /// Whether the cache holds so much that housekeeping should evict.
    func isNeeded(in store: Store) -> Bool {
        store.totals.bytes > context.configuration.maxBytes / 100 * 95
    }

    /// Brings the cache from above 95 % of its size to 90 %, and frees space on a disk that is too full.
    func keepLimits(of store: Store) {
        if isNeeded(in: store) {
            let target = context.configuration.maxBytes / 100 * 90
            evict(from: store) { store.totals.bytes - target }
        }
        let minimum = context.configuration.minFreeBytes
        // More than required, so that not every publish reaches the minimum again.
        let margin = minimum / 8
        guard let free = try? store.directory.freeBytes(), free < minimum + margin / 2 else { return }
        // Measured once per round: the blocks of files that are still being read become free later.
        var missing = minimum + margin - free
        evict(from: store) {
            defer { missing = 0 }
            return missing
        }
    }

    /// Evicts what would take the cache over its limit once `length` more bytes are stored.
    func makeSpace(for length: Int64, in store: Store) {
        while true {
            let excess = store.totals.bytes + length - context.configuration.maxBytes
            guard excess > 0, evictBatch(atLeast: excess, from: store) > 0 else { return }
        }
    }

    /// Evicts until `excess` returns zero or less, nothing is left, or the cache closes.
    private func evict(from store: Store, excess: () -> Int64) {
        while true {
            var missing = excess()
            guard missing > 0 else { return }
            while missing > 0 {
                if context.housekeeping.isEnding { return }
                let evicted = evictBatch(atLeast: missing, from: store)
                if evicted == 0 { return }
                missing -= evicted
            }
        }
    }

    /// Evicts a bounded number of objects.
    ///
    /// - Returns: Their bytes.
    @discardableResult
    func evictBatch(atLeast wanted: Int64, from store: Store) -> Int64 {
        let evicted = store.evict(atLeast: wanted, visited: context.hot.visited)
        guard !evicted.isEmpty else { return 0 }
        context.reached(.evictedFromDisk)
        let bytes = evicted.reduce(0) { $0 + $1.record.length }
        context.counters.evictions.count(Int64(evicted.count))
        context.counters.evictedBytes.count(bytes)
        // Releases the open files: their blocks become free when the last reader ends.
        context.hot.remove(Set(evicted.map(\.record.id)))
        return bytes
    }
}
