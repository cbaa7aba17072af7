internal import Glibc
internal import SystemIO

/// Looking up.
extension Cache {
    /// The rendition an alias leads to, if it is in use and its file open. Never waits for a disk.
    package func hotAlias(_ key: AliasKey) -> CachedRendition? {
        guard let rendition = hotAliases.use(key) else { return nil }
        visited.note(rendition.object)
        return rendition
    }

    /// The rendition of that id, if it is in use and its file open. Never waits for a disk.
    package func hotObject(_ id: ObjectID) -> CachedRendition? {
        guard let rendition = hotObjects.use(id) else { return nil }
        visited.note(rendition.object)
        return rendition
    }

    /// The rendition an alias leads to, from memory, or from index and disk by a thread of the cache.
    ///
    /// - Parameter isFirstLook: False where the same request was counted as a miss before.
    package func alias(_ key: AliasKey, isFirstLook: Bool = true) async -> CachedRendition? {
        if let hot = hotAlias(key) { return hot }
        return await lookUp(isFirstLook: isFirstLook) { self.findAlias(key) }
    }

    /// The rendition of that id, from memory, or from index and disk by a thread of the cache.
    ///
    /// - Parameter isFirstLook: False where nothing is to be counted as a miss.
    package func object(_ id: ObjectID, isFirstLook: Bool = true) async -> CachedRendition? {
        if let hot = hotObject(id) { return hot }
        return await lookUp(isFirstLook: isFirstLook) { self.findObject(id) }
    }

    private func lookUp(
        isFirstLook: Bool = true, _ find: @escaping @Sendable () -> CachedRendition?
    ) async -> CachedRendition? {
        guard let found = await lookups.run(find) else {
            counters.refused.count()
            return nil
        }
        if found != nil { counters.diskHits.count() } else if isFirstLook { counters.misses.count() }
        return found
    }

    // MARK: On a thread of the cache

    func findAlias(_ key: AliasKey) -> CachedRendition? {
        // A purge in the midst of it means looking again; so many in a row are a miss.
        for _ in 0..<Self.attempts {
            // The epoch first: a purge that comes after it is noticed below, and one before it has removed the row.
            let epoch = purges.epoch
            reached(.lookupNotedEpoch)
            let store = store
            guard let row = read(from: store, { (view) throws(IndexError) in try view.alias(key) }),
                let object = open(row.object, in: store, epoch: epoch)
            else { return nil }
            let rendition = CachedRendition(object: object, alias: row.record, aliasSequence: row.sequence, epoch: epoch)
            if keepHot(rendition) {
                visited.note(object)
                return rendition
            }
        }
        return nil
    }

    func findObject(_ id: ObjectID) -> CachedRendition? {
        let epoch = purges.epoch
        let store = store
        guard let row = read(from: store, { (view) throws(IndexError) in try view.object(id) }),
            let object = open(row, in: store, epoch: epoch)
        else { return nil }
        visited.note(object)
        return CachedRendition(object: object, alias: nil, epoch: epoch)
    }

    /// Puts a rendition found or published under an alias into the hot table.
    ///
    /// - Returns: False when a purge overtook it; then it must not be given out as found.
    func keepHot(_ rendition: CachedRendition) -> Bool {
        guard let alias = rendition.alias else { return true }
        reached(.lookupOpenedFile)
        var isPurged = false
        hotAliases.insert(rendition, for: alias.key) { present in
            isPurged = purges.overtook(rendition.epoch, sourceURL: alias.sourceURL, object: rendition.objectID)
            // A slower look-up must not undo a renewal.
            return !isPurged && (present?.aliasSequence ?? 0) <= rendition.aliasSequence
        }
        // Eviction unlinks first and then empties the tables: one of the two sees the other.
        if rendition.object.isUnlinked { hotAliases.remove(alias.key, ifSame: rendition) }
        return !isPurged
    }

    /// Opens an object's file, or takes the one that is open already; nil when it is missing or not what it should be.
    func open(_ row: ObjectRow, in store: Store, epoch: Epoch) -> StoredObject? {
        let record = row.record
        reached(.lookupReadIndex)
        if let hot = hotObjects.peek(record.id), hot.object.sequence == row.sequence {
            if row.uploaded > 0 { hot.object.markUploaded() }
            return hot.object
        }
        let descriptor: SharedDescriptor
        do throws(SystemError) {
            descriptor = try store.directory.open(record.id, record.fileExtension)
            guard try isIntact(descriptor, row) else {
                discard(row, in: store)
                return nil
            }
        } catch {
            // No descriptors left, say: it is a miss now and a hit later. A file that is not there will not come back.
            if error.code == ENOENT, store.directory.isInPlace { _ = store.forget(row) }
            return nil
        }
        reached(.lookupOpenedFile)
        let object = StoredObject(record: record, descriptor: descriptor, sequence: row.sequence)
        if row.uploaded > 0 { object.markUploaded() }
        keepHot(object, epoch: epoch)
        return object
    }

    /// Puts an object into the hot table unless a purge came since `epoch`: it may have been its object's.
    func keepHot(_ object: StoredObject, epoch: Epoch) {
        let rendition = CachedRendition(object: object, alias: nil, epoch: epoch)
        hotObjects.insert(rendition, for: object.record.id) { _ in purges.epoch == epoch }
        if object.isUnlinked { hotObjects.remove(object.record.id, ifSame: rendition) }
    }

    /// Compares a file with its record: the length always, the SHA-256 once since the start.
    private func isIntact(_ descriptor: SharedDescriptor, _ row: ObjectRow) throws(SystemError) -> Bool {
        guard try descriptor.size() == Int(row.record.length) else { return false }
        if verified.contains(row.sequence) { return true }
        let (digest, length) = try ContentDigest.measure(descriptor)
        guard digest == row.record.content, Int64(length) == row.record.length else { return false }
        verified.insert(row.sequence)
        return true
    }

    func read<Row>(from store: Store, _ question: (IndexView) throws(IndexError) -> Row?) -> Row? {
        let view = store.view()
        do throws(IndexError) {
            return try question(view)
        } catch {
            store.report(error, of: view.index)
            return nil
        }
    }

    private static var attempts: Int { 3 }
}

extension StoredObject {
    /// Whether its file has lost its name, by eviction or purge.
    var isUnlinked: Bool {
        var status = stat()
        return fstat(descriptor.number, &status) == 0 && status.st_nlink == 0
    }
}
