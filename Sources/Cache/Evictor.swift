/// Evicts objects to keep the cache within its size and the disk within its free space. Every call may block.
struct Evictor: Sendable {
    private let context: CacheContext

    init(_ context: CacheContext) {
        self.context = context
    }

    /// Whether the cache holds so much that housekeeping should evict.
    func isNeeded(in store: Store) -> Bool {
        store.currentTotals.bytes > context.configuration.maxBytes / 100 * 95
    }

    /// Brings the cache from above 95 % of its size to 90 %, and frees space on a disk that is too full.
    func run(in store: Store) {
        if isNeeded(in: store) {
            let target = context.configuration.maxBytes / 100 * 90
            evict(in: store) { store.currentTotals.bytes - target }
        }
        let minimum = context.configuration.minFreeBytes
        // Some more is freed than required, so that publishes do not reach the minimum one by one.
        let margin = minimum / 8
        guard let free = try? store.directory.freeBytes(), free < minimum + margin / 2 else { return }
        // Measured once per round: the blocks of files that are still being read become free later.
        var missing = minimum + margin - free
        evict(in: store) {
            defer { missing = 0 }
            return missing
        }
    }

    /// Evicts what would take the cache over its limit once `length` more bytes are stored.
    func makeRoom(for length: Int64, in store: Store) {
        while true {
            let excess = store.currentTotals.bytes + length - context.configuration.maxBytes
            guard excess > 0, evictBatch(atLeast: excess, in: store) > 0 else { return }
        }
    }

    /// Evicts until `excess` has been evicted each time it was asked for, nothing is left, or the cache closes.
    private func evict(in store: Store, excess: () -> Int64) {
        while true {
            var missing = excess()
            guard missing > 0 else { return }
            while missing > 0 {
                if context.housekeeping.isEnding { return }
                let evicted = evictBatch(atLeast: missing, in: store)
                if evicted == 0 { return }
                missing -= evicted
            }
        }
    }

    /// Evicts a bounded number of objects.
    ///
    /// - Returns: Their bytes.
    @discardableResult
    func evictBatch(atLeast wanted: Int64, in store: Store) -> Int64 {
        let evicted = store.evict(atLeast: wanted, visited: context.hot.visited)
        guard !evicted.isEmpty else { return 0 }
        context.reached(.evictedFromDisk)
        let bytes = evicted.reduce(0) { $0 + $1.record.length }
        context.counters.evictions.count(Int64(evicted.count))
        context.counters.evictedBytes.count(bytes)
        // Closes the files, so that their blocks become free when the last reader ends.
        context.hot.remove(Set(evicted.map(\.record.id)))
        return bytes
    }
}
