internal import Glibc
internal import Synchronization
internal import SystemIO

/// Finds renditions on disk. Every call may block.
struct RenditionFinder: Sendable {
    /// The SHA-256 of a large file was not verified since startup, and this finder does not hash large files.
    struct Unverified: Error {}

    let context: CacheContext
    var hashesLargeFiles = true

    func rendition(under key: AliasKey) throws(Unverified) -> CachedRendition? {
        // A purge during the lookup causes another attempt; after several in a row, the lookup is a miss.
        for _ in 0..<Self.attempts {
            // Notes the epoch first: a later purge is noticed below, and an earlier purge hides the row.
            let epoch = context.purges.epoch
            context.reached(.lookupNotedEpoch)
            guard let row = context.query({ try $0.aliasRow(key) }) ?? nil,
                let object = try open(row.object, epoch: epoch)
            else { return nil }
            // A purge of another node that arrives meanwhile is compared with the request to the origin, not with this lookup.
            let rendition = CachedRendition(
                object: object, alias: row.record, aliasSequence: row.sequence, epoch: epoch.began(at: row.began))
            if context.hot.insert(rendition) {
                context.hot.visited.note(object)
                return rendition
            }
        }
        return nil
    }

    func rendition(with id: ObjectID) throws(Unverified) -> CachedRendition? {
        let epoch = context.purges.epoch
        guard let object = try storedObject(id) else { return nil }
        let missed = context.doubts.missed
        guard object.sequence > missed.aliases || context.query({ try $0.isConfirmed(id, since: missed) }) == true else {
            return nil
        }
        context.hot.visited.note(object)
        return CachedRendition(object: object, alias: nil, epoch: epoch)
    }

    func storedObject(_ id: ObjectID) throws(Unverified) -> StoredObject? {
        let epoch = context.purges.epoch
        guard let row = context.query({ try $0.objectRow(id) }) ?? nil else { return nil }
        return try open(row, epoch: epoch)
    }

    /// Opens an object's file, or returns the object that is already open. Nil if the file is missing or does not match its
    /// record.
    func open(_ row: ObjectRow, epoch: Epoch) throws(Unverified) -> StoredObject? {
        let record = row.record
        context.reached(.lookupReadIndex)
        if let hot = context.hot.peek(record.id), hot.sequence == row.sequence { return hot }
        guard hashesLargeFiles || record.length <= Self.largeFile || context.verified.contains(row.sequence) else {
            throw Unverified()
        }
        let descriptor: SharedDescriptor
        do throws(SystemError) {
            descriptor = try context.directory.objects.open(record.name)
            guard try isIntact(descriptor, row) else {
                removeCorrupt(row)
                return nil
            }
            // Prefetches the start of the file, so that its next reader does not wait for the disk.
            _ = try descriptor.read(Self.startLength, at: 0)
        } catch {
            // Housekeeping frees descriptors.
            if error.code == EMFILE { context.housekeeping.wake() }
            // Other errors, such as a lack of descriptors, are a miss now and may be a hit later. A missing file stays missing.
            if error.code == ENOENT, context.directory.isInPlace { _ = context.changes.withLock { $0.forget(row) } }
            return nil
        }
        context.reached(.lookupOpenedFile)
        let object = StoredObject(record: record, descriptor: descriptor, sequence: row.sequence)
        context.hot.insert(object, epoch: epoch)
        return object
    }

    func removeCorrupt(_ row: ObjectRow) {
        guard context.changes.withLock({ $0.forget(row) }) else { return }
        context.counters.update { $0.corrupt += 1 }
        context.hot.remove([row.record.id])
    }

    /// Compares a file with its record: the length always, the SHA-256 once per run of the server.
    private func isIntact(_ descriptor: SharedDescriptor, _ row: ObjectRow) throws(SystemError) -> Bool {
        guard try descriptor.size() == Int(row.record.length) else { return false }
        if context.verified.contains(row.sequence) { return true }
        let (digest, length) = try ContentDigest.measure(descriptor)
        guard digest == row.record.content, Int64(length) == row.record.length else { return false }
        context.verified.insert(row.sequence)
        return true
    }

    private static let attempts = 3
    /// The file size in bytes above which hashing takes longer than the rest of a lookup.
    private static let largeFile = 256 << 10
    /// Bytes at the start of a file that are read when it is opened.
    private static let startLength = 32 << 10
}
