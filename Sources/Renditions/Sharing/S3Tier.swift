package import Cache
package import SharedStore
internal import SystemIO

/// The shared tier in an S3-compatible object store.
package struct S3Tier: SharedTier {
    private let store: SharedStore
    /// The largest rendition to receive, in bytes.
    private let maxBytes: Int

    /// - Parameter maxBytes: The largest rendition to receive; the local cache refuses larger ones anyway.
    package init(_ store: SharedStore, maxBytes: Int) {
        self.store = store
        self.maxBytes = maxBytes
    }

    package func load(_ id: ObjectID, fileExtension: String, into file: StagedFile) async -> SharedObject? {
        guard let name = RenditionName(id: id.description, fileExtension: fileExtension) else { return nil }
        do throws(StoreError) {
            return try await store.fetch(name, into: file.descriptor, maxLength: maxBytes).map { SharedObject(facts: $0.facts) }
        } catch {
            // The store counts the failure and reports outages.
            return nil
        }
    }

    package func save(_ rendition: CachedRendition) async -> Bool {
        guard let name = RenditionName(id: rendition.objectID.description, fileExtension: rendition.fileExtension),
            let record = StoredRecord(
                length: Int(rendition.length), digest: rendition.content.bytes, created: rendition.created,
                facts: rendition.facts)
        else { return false }
        let mediaType = Rendition.Format(rawValue: rendition.fileExtension)?.contentType ?? "application/octet-stream"
        store.store(name, rendition.descriptor, record, mediaType: mediaType)
        return await store.flush(name)
    }

    package func remove(_ id: ObjectID) async {
        // The id does not tell the format.
        let extensions = Rendition.Format.allCases.map(\.rawValue) + [Rendition.Format.gif.rawValue]
        await withDiscardingTaskGroup { group in
            for name in extensions.compactMap({ RenditionName(id: id.description, fileExtension: $0) }) {
                group.addTask {
                    if await store.remove(name) { _ = await store.flush(name) }
                }
            }
        }
    }
}
