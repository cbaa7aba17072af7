package import Store
internal import Synchronization
internal import SystemIO

/// The shared tier in an S3-compatible object store.
package struct S3Tier: SharedTier {
    private let store: SharedStore
    private let cache: Cache

    /// The longest time that a lease waits for the store, in addition to an upload at 1 MiB/s: other nodes wait for the lease.
    private static let saveLimit: Duration = .seconds(2)
    /// The shortest time allowed for a rendition that only the store has.
    private static let onlySourceLimit: Duration = .seconds(2)
    /// The largest rendition to receive, unless the local cache refuses even smaller ones.
    private static let largestObject: Int64 = 1 << 40

    /// Makes each purge of an object delete it from the store, too, and saves what the cache's disk stores late.
    ///
    /// - Parameter cache: The cache whose ledger contains the store's outbox.
    package init(_ store: SharedStore, cache: Cache) {
        self.store = store
        self.cache = cache
        if let outbox = store.outbox { cache.sendDeletions(by: outbox) }
        cache.observeLateRenditions { [self] rendition in Task { await save(rendition) } }
    }

    package func load(
        _ id: ObjectID, fileExtension: String, into file: StagedFile, isOnlySource: Bool
    ) async -> SharedLookUp {
        guard let name = RenditionName(id: id, fileExtension: fileExtension) else { return .absent }
        do throws(StoreError) {
            let found = try await store.fetch(
                name, into: file.descriptor, maxLength: Int(min(cache.maxBytes, Self.largestObject)),
                within: isOnlySource ? max(Self.onlySourceLimit, store.lookupTimeout) : nil)
            return found.map { .found($0) } ?? .absent
        } catch {
            // The store counts the failure and reports outages.
            return switch error {
            case .tooLarge, .damaged: .absent
            default: .unavailable
            }
        }
    }

    package func save(_ rendition: CachedRendition) async -> Bool {
        let record = StoredRecord(
            length: Int(rendition.length), digest: rendition.content.bytes, created: rendition.created,
            facts: rendition.facts, began: rendition.epoch.began)
        guard let record else { return false }
        let mediaType = Rendition.Format(rawValue: rendition.fileExtension)?.contentType ?? "application/octet-stream"
        let limit = Self.saveLimit + .seconds(rendition.length >> 20)
        let isReadable = Atomic(false)
        let isOver = AsyncSignal()
        // Queuing waits for the disk as long as it stalls.
        Task { [store, cache] in
            let isSent = await store.store(
                rendition.name, rendition.descriptor, record, mediaType: mediaType, within: limit
            ) { change in
                await cache.record(of: rendition.objectID, since: rendition.epoch, change)
            }
            isReadable.store(isSent, ordering: .relaxed)
            isOver.signal()
        }
        await isOver.wait(for: limit)
        return isReadable.load(ordering: .relaxed)
    }
}

/// A store of finished renditions that several nodes share, behind the local cache.
///
/// Every operation may fail at any time without an effect on the request: the pipeline then produces the rendition itself.
package protocol SharedTier: Sendable {
    /// Receives an object into a staged file of the local cache.
    ///
    /// The content of the file is undefined unless the object was found, and its length and digest were verified.
    ///
    /// - Parameter isOnlySource: Whether the rendition cannot be produced instead, so that it is worth a longer wait.
    func load(
        _ id: ObjectID, fileExtension: String, into file: StagedFile, isOnlySource: Bool
    ) async -> SharedLookUp

    /// Stores a rendition, unless its object was purged since it was published. Returns within a deadline of the tier: other
    /// nodes wait for the lease that ends afterwards.
    ///
    /// - Returns: Whether other nodes can read it now. If not, the tier stores it as soon as it can.
    func save(_ rendition: CachedRendition) async -> Bool
}

/// The shared tier's answer about an object.
package enum SharedLookUp: Sendable {
    case found(StoredRecord)
    case absent
    /// The tier cannot be reached, or does not answer in time.
    case unavailable
}
