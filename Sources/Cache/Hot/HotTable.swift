internal import Synchronization

/// Renditions in use, with their files open: what answers a hit without index or file system.
///
/// Sharded by the key's first bits, each shard with a lock of its own held for one dictionary access, so that I/O threads
/// seldom meet. Values removed are let go outside the lock, since that may close a file. Any thread.
final class HotTable<Key: DigestName>: Sendable {
    private struct Shard {
        var table: SieveTable<Key, CachedRendition>
        var hits: Int64 = 0
    }

    /// A lock alone in its cache line, so that two threads in two shards do not slow one another.
    private final class Cell: Sendable {
        let shard: Mutex<Shard>
        private let padding: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0, 0, 0, 0, 0)

        init(limit: Int) {
            shard = Mutex(Shard(table: SieveTable(limit: limit)))
        }
    }

    private let cells: [Cell]
    private let mask: UInt64

    /// - Parameter limit: Entries in all, at least 1; rounded up to a multiple of the number of shards.
    init(limit: Int) {
        let count = limit >= 256 ? 16 : 1
        cells = (0..<count).map { _ in Cell(limit: (limit + count - 1) / count) }
        mask = UInt64(count - 1)
    }

    /// The entry, marked as used and counted as a hit.
    func use(_ key: Key) -> CachedRendition? {
        cell(of: key).shard.withLock { shard in
            guard let rendition = shard.table.use(key) else { return nil }
            shard.hits += 1
            return rendition
        }
    }

    /// The entry, neither marked nor counted.
    func peek(_ key: Key) -> CachedRendition? {
        cell(of: key).shard.withLock { $0.table.peek(key) }
    }

    /// Puts an entry in if `stillValid` holds, which is given the entry that is there now.
    ///
    /// The condition is looked at under the shard's lock. A purge first makes it false and then takes the shard's lock to
    /// remove, so it either refuses the entry here or finds it there.
    @discardableResult
    func insert(_ rendition: CachedRendition, for key: Key, if stillValid: (CachedRendition?) -> Bool) -> Bool {
        let (isIn, removed): (Bool, CachedRendition?) = cell(of: key).shard.withLock { shard in
            stillValid(shard.table.peek(key)) ? (true, shard.table.insert(rendition, for: key)) : (false, nil)
        }
        // Let go only now, after the lock.
        _ = removed
        return isIn
    }

    /// Takes out one entry if it is still the one given.
    func remove(_ key: Key, ifSame rendition: CachedRendition) {
        let removed: CachedRendition? = cell(of: key).shard.withLock { shard in
            shard.table.peek(key) === rendition ? shard.table.remove(key) : nil
        }
        _ = removed
    }

    /// Takes out every entry that `condition` holds for.
    func removeAll(where condition: (CachedRendition) -> Bool) {
        for cell in cells {
            let removed = cell.shard.withLock { $0.table.removeAll { _, rendition in condition(rendition) } }
            _ = removed
        }
    }

    /// Look-ups answered so far.
    var hits: Int64 {
        cells.reduce(0) { $0 + $1.shard.withLock(\.hits) }
    }

    @inline(__always)
    private func cell(of key: Key) -> Cell {
        cells[Int(truncatingIfNeeded: key.digest.prefix & mask)]
    }
}
