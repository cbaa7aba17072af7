package import Cache
package import SharedStore
internal import SystemIO

/// The shared tier in an S3-compatible object store.
package struct S3Tier: SharedTier {
    private let store: SharedStore
    /// The largest rendition to receive, in bytes.
    private let maxBytes: Int

    /// The longest time that a lease waits for the store, beside that of the upload at 1 MiB/s: other nodes wait for the lease.
    private static let saveLimit: Duration = .seconds(2)
    /// The longest time that a purge waits for the store.
    private static let removalLimit: Duration = .seconds(2)

    /// - Parameter maxBytes: The largest rendition to receive; the local cache refuses larger ones anyway.
    package init(_ store: SharedStore, maxBytes: Int) {
        self.store = store
        self.maxBytes = maxBytes
    }

    package func load(_ id: ObjectID, fileExtension: String, into file: StagedFile) async -> SharedLookUp {
        guard let name = RenditionName(id: id.description, fileExtension: fileExtension) else { return .absent }
        do throws(StoreError) {
            let found = try await store.fetch(name, into: file.descriptor, maxLength: maxBytes)
            return found.map { .found(SharedObject(facts: $0.facts)) } ?? .absent
        } catch {
            // The store counts the failure and reports outages.
            return switch error {
            case .tooLarge, .damaged: .absent
            default: .unavailable
            }
        }
    }

    package func save(_ rendition: CachedRendition) async -> Bool {
        guard let name = RenditionName(id: rendition.objectID.description, fileExtension: rendition.fileExtension),
            let record = StoredRecord(
                length: Int(rendition.length), digest: rendition.content.bytes, created: rendition.created,
                facts: rendition.facts)
        else { return false }
        let mediaType = Rendition.Format(rawValue: rendition.fileExtension)?.contentType ?? "application/octet-stream"
        let limit = Self.saveLimit + .seconds(rendition.length >> 20)
        return await store.store(name, rendition.descriptor, record, mediaType: mediaType, within: limit)
    }

    package func remove(_ id: ObjectID) async -> Bool {
        await withTaskGroup(of: Bool.self) { group in
            for name in Self.names(of: id) {
                group.addTask { await store.remove(name) }
            }
            return await group.reduce(true) { $0 && $1 }
        }
    }

    package func dropHeldWrites() async {
        await store.dropHeldQueue()
    }

    package func awaitRemoval(of id: ObjectID) async {
        await withDiscardingTaskGroup { group in
            for name in Self.names(of: id) {
                group.addTask { _ = await store.flush(name, within: Self.removalLimit) }
            }
        }
    }

    /// The names that an object may have: its id does not tell the format.
    private static func names(of id: ObjectID) -> [RenditionName] {
        (Rendition.Format.allCases.map(\.rawValue) + [Rendition.Format.gif.rawValue]).compactMap {
            RenditionName(id: id.description, fileExtension: $0)
        }
    }
}
