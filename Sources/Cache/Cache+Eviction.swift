/// Making room.
extension Cache {
    /// Bytes from which on eviction begins.
    var highWatermark: Int64 { configuration.maxBytes / 100 * 95 }
    /// Bytes at which it stops.
    var lowWatermark: Int64 { configuration.maxBytes / 100 * 90 }

    /// Brings the cache below its low watermark once it is above the high one. On the housekeeping thread.
    func evict() {
        let store = store
        guard store.currentTotals.bytes > highWatermark else { return }
        while !housekeeping.isEnding {
            let excess = store.currentTotals.bytes - lowWatermark
            guard excess > 0, evictBatch(atLeast: excess, in: store) > 0 else { return }
        }
    }

    /// Evicts at once what would otherwise take the cache over its limit.
    func makeRoom(for length: Int64, in store: Store) {
        while true {
            let excess = store.currentTotals.bytes + length - configuration.maxBytes
            guard excess > 0, evictBatch(atLeast: excess, in: store) > 0 else { return }
        }
    }

    /// Evicts a bounded number of objects; returns their bytes.
    func evictBatch(atLeast wanted: Int64, in store: Store) -> Int64 {
        let evicted = store.evict(atLeast: wanted, visited: visited)
        guard !evicted.isEmpty else { return 0 }
        let ids = Set(evicted.map(\.record.id))
        // So that the files' blocks are freed as soon as nobody reads them.
        hotAliases.removeAll { ids.contains($0.objectID) }
        hotObjects.removeAll { ids.contains($0.objectID) }
        let bytes = evicted.reduce(0) { $0 + $1.record.length }
        counters.evictions.count(Int64(evicted.count))
        counters.evictedBytes.count(bytes)
        return bytes
    }
}
