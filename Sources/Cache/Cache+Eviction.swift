/// Making room.
extension Cache {
    /// Bytes from which on eviction begins.
    var highWatermark: Int64 { configuration.maxBytes / 100 * 95 }
    /// Bytes at which it stops.
    var lowWatermark: Int64 { configuration.maxBytes / 100 * 90 }
    /// Bytes of the disk that are kept free beyond the minimum, so that publishes do not meet it one by one.
    private var freeMargin: Int64 { configuration.minFreeBytes / 8 }

    /// Brings the cache below its low watermark once it is above the high one, and frees the disk once it is too full. On the
    /// housekeeping thread.
    func evict(in store: Store) {
        if store.currentTotals.bytes > highWatermark {
            evict(in: store) { store.currentTotals.bytes - self.lowWatermark }
        }
        guard let free = try? store.directory.freeBytes(), free < configuration.minFreeBytes + freeMargin / 2 else { return }
        // Measured once a round: blocks of files that are still being read come free later, and must not cost more files.
        var missing = configuration.minFreeBytes + freeMargin - free
        while missing > 0, !housekeeping.isEnding {
            let evicted = evictBatch(atLeast: missing, in: store)
            if evicted == 0 { return }
            missing -= evicted
        }
    }

    /// Evicts at once what would otherwise take the cache over its limit.
    func makeRoom(for length: Int64, in store: Store) {
        while true {
            let excess = store.currentTotals.bytes + length - configuration.maxBytes
            guard excess > 0, evictBatch(atLeast: excess, in: store) > 0 else { return }
        }
    }

    private func evict(in store: Store, excess: () -> Int64) {
        while !housekeeping.isEnding {
            let bytes = excess()
            guard bytes > 0, evictBatch(atLeast: bytes, in: store) > 0 else { return }
        }
    }

    /// Evicts a bounded number of objects; returns their bytes.
    @discardableResult
    func evictBatch(atLeast wanted: Int64, in store: Store) -> Int64 {
        let evicted = store.evict(atLeast: wanted, visited: visited)
        guard !evicted.isEmpty else { return 0 }
        reached(.evictedFromDisk)
        // So that the files' blocks are freed as soon as nobody reads them.
        cool(Set(evicted.map(\.record.id)))
        let bytes = evicted.reduce(0) { $0 + $1.record.length }
        counters.evictions.count(Int64(evicted.count))
        counters.evictedBytes.count(bytes)
        return bytes
    }

    /// Takes objects out of the hot tables.
    func cool(_ objects: Set<ObjectID>) {
        hotAliases.removeAll { objects.contains($0.objectID) }
        hotObjects.removeAll { objects.contains($0.objectID) }
    }
}
