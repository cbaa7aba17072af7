internal import Digests
internal import HTTPClient
internal import Synchronization
internal import SystemIO

/// Renditions with their records, as objects of a bucket. Each function is one attempt, without retries.
///
/// The record is stored as the object's metadata. Some servers silently drop metadata, and long facts exceed its limit; in
/// these cases, a second object next to the first contains the record. The first upload of the process determines whether the
/// server keeps metadata.
final class RecordedObjects: Sendable {
    typealias Instant = ContinuousClock.Instant

    private let client: S3Client
    private let keys: KeySpace
    private let keepsMetadata = Mutex<Bool?>(nil)

    init(_ client: S3Client, _ keys: KeySpace) {
        self.client = client
        self.keys = keys
    }

    /// The largest object with a record, in bytes.
    private static let maxRecordLength = 64 << 10

    /// Gets a rendition into a file, which is emptied first, and verifies length and digest; nil if the store does not have it.
    ///
    /// - Throws: ``StoreError``; the file's content is then undefined.
    func get(
        _ name: RenditionName, into file: SharedDescriptor, maxLength: Int, by deadline: Instant
    ) async throws(StoreError) -> StoredRecord? {
        guard let object = try await client.get(keys.object(name), to: .file(file, limit: maxLength), timeout: deadline - .now)
        else { return nil }
        var record = try recordIn(object.metadata)
        if record == nil { record = try await getRecord(name, by: deadline) }
        // Without a record, the object is being written, or another program has put it there.
        guard let record else { return nil }
        guard object.length == record.length else {
            throw .damaged(cause: "it has \(object.length) bytes in place of \(record.length)")
        }
        guard object.digest == record.digest else { throw .damaged(cause: "its SHA-256 does not match") }
        return record
    }

    /// Stores a rendition. The file must not change.
    func put(
        _ name: RenditionName, _ file: SharedDescriptor, _ record: StoredRecord, mediaType: String, by deadline: Instant
    ) async throws(StoreError) {
        let usesMetadata = record.fitsMetadata
        let support = keepsMetadata.withLock { $0 }
        // Stored before the object, so that an object without a record is never complete.
        if !usesMetadata || support == false { try await putRecord(name, record, by: deadline) }
        try await client.put(
            keys.object(name),
            S3Client.Upload(
                body: .file(file, length: record.length), digest: record.digest, mediaType: mediaType,
                metadata: usesMetadata ? record.fields : [:]),
            timeout: deadline - .now)
        guard usesMetadata, support == nil,
            let metadata = try await client.head(keys.object(name), timeout: deadline - .now)
        else { return }
        let isKept = StoredRecord(fields: metadata) == record
        keepsMetadata.withLock { $0 = isKept }
        if !isKept { try await putRecord(name, record, by: deadline) }
    }

    /// Deletes the renditions of an id and their records. Succeeds if the store does not have them.
    ///
    /// - Parameters:
    ///   - fileExtensions: The extensions to try if the keys do not permit listing.
    ///   - time: Only what began until this time is deleted, in milliseconds of the cluster's clock.
    func delete(
        _ id: ObjectID, _ fileExtensions: [String], until time: Int64, by deadline: Instant
    ) async throws(StoreError) {
        let present = try await keys(of: id, by: deadline)
        let names = fileExtensions.compactMap { RenditionName(id: id, fileExtension: $0) }
        var doomed =
            present ?? Dictionary(uniqueKeysWithValues: names.map { ($0, [self.keys.object($0), self.keys.record($0)]) })
        for name in doomed.keys {
            let record = try await record(name, by: deadline)
            if record?.began(until: time) != true { doomed[name] = nil }
        }
        // A rendition's record is deleted after its object: a record without an object is not found.
        try await delete(doomed.values.flatMap(\.self), by: deadline)
    }

    /// The store's keys for an id, by rendition, the object before its record. Nil if the store does not permit listing.
    private func keys(of id: ObjectID, by deadline: Instant) async throws(StoreError) -> [RenditionName: [String]]? {
        do throws(StoreError) {
            // An id has fewer objects than a page.
            let page = try await client.list(prefix: keys.objects(id), token: nil, timeout: deadline - .now)
            var present: [RenditionName: [String]] = [:]
            for key in page.entries.map(\.key).sorted() {
                if let name = keys.name(key) { present[name, default: []].append(key) }
            }
            return present
        } catch {
            switch error {
            case .denied(code: "AccessDenied"), .rejected: return nil
            default: throw error
            }
        }
    }

    /// The record of a rendition; nil if the store has no rendition with a readable record.
    private func record(_ name: RenditionName, by deadline: Instant) async throws(StoreError) -> StoredRecord? {
        guard let metadata = try await client.head(keys.object(name), timeout: deadline - .now) else { return nil }
        if StoredRecord.isPresent(in: metadata) { return StoredRecord(fields: metadata) }
        return try await getRecord(name, by: deadline)
    }

    /// Deletes up to ``S3Client/maxDeletions`` objects in order, by one request if the server permits.
    private func delete(_ keys: [String], by deadline: Instant) async throws(StoreError) {
        if keys.count > 1, let failures = try await client.delete(keys, timeout: deadline - .now) {
            if let failure = failures.values.first { throw failure }
            return
        }
        for key in keys { try await client.delete(key, timeout: deadline - .now) }
    }

    private func recordIn(_ metadata: [String: String]) throws(StoreError) -> StoredRecord? {
        guard StoredRecord.isPresent(in: metadata) else { return nil }
        keepsMetadata.withLock { $0 = true }
        guard let record = StoredRecord(fields: metadata) else { throw .damaged(cause: "its record cannot be read") }
        return record
    }

    private func getRecord(_ name: RenditionName, by deadline: Instant) async throws(StoreError) -> StoredRecord? {
        let object = try await client.get(keys.record(name), to: .memory(limit: Self.maxRecordLength), timeout: deadline - .now)
        guard let object else { return nil }
        guard let record = StoredRecord(fields: FieldLines.decode(object.body)) else {
            throw .damaged(cause: "its record cannot be read")
        }
        return record
    }

    private func putRecord(_ name: RenditionName, _ record: StoredRecord, by deadline: Instant) async throws(StoreError) {
        let bytes = FieldLines.encode(record.fields)
        let upload = S3Client.Upload(body: .bytes(bytes), digest: SHA256.hash(bytes), mediaType: "text/plain")
        try await client.put(keys.record(name), upload, timeout: deadline - .now)
    }
}
