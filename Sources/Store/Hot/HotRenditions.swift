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

    /// Adds a rendition that was found or published under an alias.
    ///
    /// - Returns: False if a purge overtook it; the caller must then not return it.
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
