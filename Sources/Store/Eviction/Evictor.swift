internal import Synchronization
internal import SystemIO

/// Evicts objects to keep the cache within its size limit and enough of the disk free. Any thread. Every call may block.
final class Evictor: Sendable {
    private let context: CacheContext
    private let evictedSpace = Mutex(EvictedSpace())

    init(_ context: CacheContext) {
        self.context = context
    }

    /// Whether the cache is so full that housekeeping should evict.
    var isNeeded: Bool { context.status.totals.space > context.maxBytes / 100 * 95 }

    /// Brings the cache from above 95 % of its size to 90 %, and frees space and inodes on a disk that is too full.
    func keepLimits() {
        let maxBytes = context.maxBytes
        // Small objects may have any number of aliases, which must not displace all objects.
        evictAliases { context.status.totals.aliasSpace - maxBytes / 8 }
        if isNeeded {
            let target = maxBytes / 100 * 90
            evict { _ in context.status.totals.space - target }
        }
        let isOverQuota = context.isOverQuota.exchange(false, ordering: .relaxed)
        let before = evictions
        keepFreeSpace()
        keepFreeInodes()
        guard isOverQuota, evictions == before else { return }
        let target = context.status.totals.objectSpace / 100 * 99 - Self.leastSpace
        evict { _ in context.status.totals.objectSpace - target }
    }

    /// The minimum to evict, in bytes, after the disk refused a file despite free space: a few small renditions.
    private static let leastSpace: Int64 = 64 << 10

    private func evictAliases(excess: () -> Int64) {
        let hot = context.hot
        while excess() > 0, !context.housekeeping.isEnding,
            let objects = context.changes.withLock({ $0.evictAliases(unless: hot.contains) })
        {
            guard !objects.isEmpty else { continue }
            countEvicted(objects)
            context.hot.remove(Set(objects.map(\.record.id)))
        }
    }

    private func keepFreeInodes() {
        guard let space = try? context.directory.space(), let files = space.freeFiles else { return }
        let least = min(space.allFiles / 16, 1024)
        guard files < least else { return }
        let wanted = least + least / 8 - files
        let before = evictions
        // Each file takes at least a block and a row.
        evict { _ in (wanted - (evictions - before)) * 4608 }
    }

    private func keepFreeSpace() {
        let minimum = context.minFreeBytes
        let refused = context.refusedBytes.exchange(0, ordering: .relaxed)
        guard let (free, expected) = measureSpace() else { return }
        // Frees more than required, so that not every publish reaches the minimum again.
        var margin = minimum / 8
        // A large file needs more, unless even an empty cache lacks the room for it.
        if minimum + 2 * refused - free <= context.status.totals.objectSpace { margin = max(margin, 2 * refused) }
        let required = minimum + margin / 2
        // Without the first comparison the sum may overflow.
        guard free < required, free + expected < required else { return }
        // Measured once per round: the blocks of files that are still being read become free later.
        let missing = minimum + margin - free - expected
        let evicted = evict { missing - $0 }
        guard evicted > 0 else { return }
        evictedSpace.withLock { $0.add(evicted, now: context.clock.monotonicNanoseconds()) }
        // Most file systems report freed space at once; measures it before writes use some of it.
        _ = measureSpace()
    }

    /// The free bytes of the disk, and those of evicted files that are expected to become free.
    private func measureSpace() -> (free: Int64, expected: Int64)? {
        guard let free = (try? context.directory.space())?.freeBytes else { return nil }
        let now = context.clock.monotonicNanoseconds()
        return (free, evictedSpace.withLock { $0.measure(free: free, now: now) })
    }

    /// Evicts objects so that `space` more bytes do not take the cache over its limit.
    ///
    /// A cache that already exceeds its limit, because the setting was lowered, does not grow: as much is evicted as is added.
    /// Housekeeping evicts the rest, which may take minutes.
    func makeSpace(for space: Int64) {
        let limit = max(context.maxBytes, context.status.totals.space)
        while true {
            let excess = context.status.totals.space + space - limit
            guard excess > 0, evictBatch(atLeast: excess).continues else { return }
        }
    }

    /// Evicts until `excess` returns zero or less, nothing is left, a file cannot be removed, or the cache closes.
    ///
    /// - Parameter excess: Receives the bytes of the files removed so far, and returns those still to be evicted.
    /// - Returns: The bytes of the removed files.
    @discardableResult
    private func evict(excess: (_ evicted: Int64) -> Int64) -> Int64 {
        var total: Int64 = 0
        while !context.housekeeping.isEnding, case let wanted = excess(total), wanted > 0 {
            let (bytes, continues) = evictBatch(atLeast: wanted)
            total += bytes
            if !continues { break }
        }
        return total
    }

    /// Evicts a bounded number of objects. Returns the bytes of their files, and whether more may be evicted.
    @discardableResult
    func evictBatch(atLeast wanted: Int64) -> (bytes: Int64, continues: Bool) {
        let evicted = context.changes.withLock { $0.evict(atLeast: wanted, visited: context.hot.visited) }
        let removed = evicted.objects + evicted.withoutFile
        guard !removed.isEmpty else { return (0, evicted.mayContinue) }
        context.reached(.evictedFromDisk)
        countEvicted(evicted.objects)
        // Releases the open files: their blocks become free when the last reader ends.
        context.hot.remove(Set(removed.map(\.record.id)))
        return (evicted.objects.reduce(0) { $0 + $1.record.length }, evicted.mayContinue)
    }

    private func countEvicted(_ objects: [ObjectRow]) {
        context.counters.update { counters in
            counters.evictions += Int64(objects.count)
            counters.evictedBytes += objects.reduce(0) { $0 + $1.record.length }
        }
    }

    private var evictions: Int64 { context.counters.snapshot.evictions }
}

/// The bytes of files that were evicted to free disk space and that the file system does not report as free yet.
///
/// Some file systems report them seconds later, and the blocks of a file that is being read become free when its last reader
/// ends. If they did not count as free, each round of housekeeping would evict as much again.
struct EvictedSpace: Sendable {
    private var bytes: Int64 = 0
    /// The free bytes at the latest measurement.
    private var free: Int64 = 0
    private var expiry: UInt64 = 0

    /// The longest time for which bytes count as free, in nanoseconds.
    private static let lifetime: UInt64 = 30 * 1_000_000_000

    mutating func add(_ evicted: Int64, now: UInt64) {
        // Bytes that are added to others expire with them, so that a series of evictions does not prolong the time.
        if bytes == 0 { expiry = now + Self.lifetime }
        bytes += evicted
    }

    /// Returns the bytes that are still expected to become free. Bytes that were written since the latest measurement do not
    /// count.
    mutating func measure(free: Int64, now: UInt64) -> Int64 {
        if now >= expiry { bytes = 0 }
        bytes -= min(bytes, max(0, free - self.free))
        self.free = free
        return bytes
    }
}
