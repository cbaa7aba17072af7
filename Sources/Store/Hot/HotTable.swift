internal import Synchronization

/// Renditions in use, with their files open, so that a hit needs neither database nor file system.
///
/// Sharded by the key's first bits. Each shard has its own lock, which is held for one dictionary access, so that I/O threads
/// seldom contend. Removed values are released outside the lock, since this may close a file. Any thread.
final class HotTable<Key: DigestName>: Sendable {
    private struct Shard {
        var table: SieveTable<Key, CachedRendition>
        var hits: Int64 = 0
    }

    /// A shard with its own cache line, which prevents false sharing.
    private final class Cell: Sendable {
        let shard: Mutex<Shard>
        private let padding: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0, 0, 0, 0, 0)

        init(limit: Int) {
            shard = Mutex(Shard(table: SieveTable(limit: limit)))
        }
    }

    private let cells: [Cell]
    private let mask: UInt64

    /// - Parameter limit: The largest number of entries, at least 1; rounded up to a multiple of the number of shards.
    init(limit: Int) {
        let count = limit >= 256 ? 16 : 1
        cells = (0..<count).map { _ in Cell(limit: (limit + count - 1) / count) }
        mask = UInt64(count - 1)
    }

    func use(_ key: Key) -> CachedRendition? {
        cell(of: key).shard.withLock { shard in
            guard let rendition = shard.table.use(key) else { return nil }
            shard.hits += 1
            return rendition
        }
    }

    func peek(_ key: Key) -> CachedRendition? {
        cell(of: key).shard.withLock { $0.table.peek(key) }
    }

    /// Inserts or replaces an entry if `isValid`, which receives the present entry, returns true.
    ///
    /// The condition is evaluated under the shard's lock. A purge first makes it false and then takes the lock to remove
    /// entries, so the purge either prevents the insertion or removes the entry.
    func insert(_ rendition: CachedRendition, for key: Key, if isValid: (CachedRendition?) -> Bool) {
        // The removed value is released outside the lock.
        _ = cell(of: key).shard.withLock { shard in
            isValid(shard.table.peek(key)) ? shard.table.insert(rendition, for: key) : nil
        }
    }

    /// Removes the entry under `key` if it is still `rendition`.
    func remove(_ key: Key, ifSame rendition: CachedRendition) {
        _ = cell(of: key).shard.withLock { shard in shard.table.peek(key) === rendition ? shard.table.remove(key) : nil }
    }

    func removeAll(where condition: (CachedRendition) -> Bool) {
        for cell in cells { _ = cell.shard.withLock { $0.table.removeAll { _, rendition in condition(rendition) } } }
    }

    /// Removes half of the entries, unused ones first.
    func trim() {
        for cell in cells { _ = cell.shard.withLock { $0.table.evict(($0.table.count + 1) / 2) } }
    }

    var hits: Int64 {
        cells.reduce(0) { $0 + $1.shard.withLock(\.hits) }
    }

    @inline(__always)
    private func cell(of key: Key) -> Cell {
        cells[Int(truncatingIfNeeded: key.digest.prefix & mask)]
    }
}
