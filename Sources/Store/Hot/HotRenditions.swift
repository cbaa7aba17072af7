internal import Synchronization

/// The renditions in use, by alias and by id, without purged and evicted ones. Any thread; no call waits for a disk.
final class HotRenditions: Sendable {
    private let aliases: HotTable<AliasKey>
    private let objects: HotTable<ObjectID>
    /// The objects used since the eviction hand passed them.
    let visited = VisitedObjects()
    private let purges: PurgeIndex
    private let onStep: (@Sendable (Step) -> Void)?

    init(limit: Int, purges: PurgeIndex, onStep: (@Sendable (Step) -> Void)?) {
        aliases = HotTable(limit: limit)
        objects = HotTable(limit: limit)
        self.purges = purges
        self.onStep = onStep
    }

    var hits: Int64 { aliases.hits + objects.hits }

    /// Returns the rendition under an alias, marks it as used and counts a hit.
    @inline(__always)
    func use(_ key: AliasKey) -> CachedRendition? {
        guard let rendition = aliases.use(key) else { return nil }
        visited.note(rendition.object)
        return rendition
    }

    /// Returns the rendition with an id, marks it as used and counts a hit.
    @inline(__always)
    func use(_ id: ObjectID) -> CachedRendition? {
        guard let rendition = objects.use(id) else { return nil }
        visited.note(rendition.object)
        return rendition
    }

    /// The open object with that id, without counting a hit.
    func peek(_ id: ObjectID) -> StoredObject? {
        objects.peek(id)?.object
    }

    /// Counts the responses that used an object while it was in memory.
    func uses(of id: ObjectID) -> Int {
        objects.peek(id)?.uses ?? 0
    }

    /// Adds a rendition that was found or published under an alias. If this returns false, a purge overtook the rendition, and
    /// the caller must not return it.
    func insert(_ rendition: CachedRendition) -> Bool {
        guard let alias = rendition.alias else { return true }
        onStep?(.lookupOpenedFile)
        var isPurged = false
        aliases.insert(rendition, for: alias.key) { present in
            isPurged = purges.overtook(rendition.epoch, sourceURL: alias.sourceURL, object: rendition.objectID)
            // A slower lookup must not undo a renewal.
            return !isPurged && (present?.aliasSequence ?? 0) <= rendition.aliasSequence
        }
        // Eviction unlinks the file first and then removes table entries, so either it or this check removes the entry.
        if rendition.object.isUnlinked { aliases.remove(alias.key, ifSame: rendition) }
        return !isPurged
    }

    /// Adds an object unless a purge came since `epoch`, because that purge may cover the object.
    func insert(_ object: StoredObject, epoch: Epoch) {
        let rendition = CachedRendition(object: object, alias: nil, epoch: epoch)
        objects.insert(rendition, for: object.record.id) { _ in purges.epoch == epoch }
        if object.isUnlinked { objects.remove(object.record.id, ifSame: rendition) }
    }

    func remove(_ ids: Set<ObjectID>) {
        aliases.removeAll { ids.contains($0.objectID) }
        objects.removeAll { ids.contains($0.objectID) }
    }

    func contains(_ key: AliasKey) -> Bool {
        aliases.peek(key) != nil
    }

    /// Removes what a purge covers.
    ///
    /// - Parameter removed: The objects whose rows the purge removed; nil if they are unknown.
    func remove(_ scope: PurgeScope, removed: Set<ObjectID>?) {
        var ids = removed ?? []
        let object = scope.objectID
        if let object { ids.insert(object) }
        aliases.removeAll { rendition in
            guard rendition.objectID == object || scope.covers(rendition.alias?.sourceURL) else { return false }
            ids.insert(rendition.objectID)
            return true
        }
        objects.removeAll { removed == nil || ids.contains($0.objectID) }
    }

    /// Removes half of the renditions, which closes their files once no response uses them.
    func trim() {
        aliases.trim()
        objects.trim()
    }

    func removeAll() {
        aliases.removeAll { _ in true }
        objects.removeAll { _ in true }
        visited.reset()
    }
}

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
