package import SystemIO

/// The cache as the rendition pipeline uses it: look up, link, renew, publish and purge. ``Cache`` is the local implementation.
///
/// No call blocks the caller's thread, except ``stage(expecting:)`` and ``stageInMemory(because:)``, which take a few system calls.
/// Hits do not go through this protocol: they use ``Cache/hotAlias(_:)`` and ``Cache/hotObject(_:)``.
package protocol RenditionCache: Sendable {
    // MARK: Looking up

    /// The rendition that an alias leads to. `isFirstLook` is false if the same request was counted as a miss before.
    func alias(_ key: AliasKey, isFirstLook: Bool) async -> CachedRendition?
    /// The rendition with that id. `isFirstLook` is false if nothing should be counted as a miss.
    func object(_ id: ObjectID, isFirstLook: Bool) async -> CachedRendition?
    /// The rendition with that id, for the client that uploaded its source. Records the upload, so that a purge of a URL with
    /// the same bytes leaves the object.
    func uploadedObject(_ id: ObjectID) async -> CachedRendition?
    /// Returns the freshness of the rendition's alias.
    func freshness(of rendition: CachedRendition) -> Freshness
    /// Returns the freshness of a source that was fetched at a time in seconds since 1970. `freshFor` is in seconds, if the origin
    /// limits them.
    func freshness(fetchedAt: Int64, freshFor: Int64?) -> Freshness
    /// Drops a rendition whose contents its reader cannot use.
    func discardCorrupt(_ rendition: CachedRendition) async

    // MARK: Purges

    /// The epoch to note before work on a source begins, and to pass to `publish`, `link` and `renew`. `sourceURL` is nil for an
    /// upload.
    func epoch(for sourceURL: String?) -> Epoch
    /// Whether a purge that covers the source came after `epoch`.
    func isPurged(_ sourceURL: String, since epoch: Epoch) -> Bool
    /// Whether the object itself was purged after `epoch`. Purges of URLs, prefixes and everything do not count.
    func isPurged(_ object: ObjectID, since epoch: Epoch) -> Bool
    /// Forgets what `scope` covers. Afterwards nothing older that it covers is found or stored.
    func purge(_ scope: PurgeScope) async throws(CacheError) -> PurgeResult
    /// Expires every alias: purges may have been missed. Work that was begun before is not stored.
    func revalidateAll() async

    // MARK: Linking

    /// Records an alias to a stored object; nil if there is no such object.
    func link(_ alias: AliasRecord, to object: ObjectID, epoch: Epoch) async -> PublishOutcome?
    /// Renews an alias that the origin has confirmed (304); nil if it is gone or was purged meanwhile.
    func renew(
        _ key: AliasKey, validators: Validators, fetchedAt: Int64, freshFor: Int64?, epoch: Epoch
    ) async -> CachedRendition?

    // MARK: Publishing

    /// A file to write a rendition of up to `expected` bytes into.
    func stage(expecting expected: Int64) throws(CacheError) -> StagedFile
    /// A file in memory, for when the disk filled up during the write. Its rendition is not stored.
    func stageInMemory(because reason: UnstoredReason) throws(CacheError) -> StagedFile
    /// A staged file with a copy of `count` bytes of `file`.
    func stage(copyOf file: SharedDescriptor, count: Int) async throws(CacheError) -> StagedFile
    /// Stores a finished rendition and the alias to it. Returns once the file is durable and both can be found.
    ///
    /// A power loss before the end of the next round of housekeeping may lose the rendition.
    func publish(
        _ staged: StagedFile, as object: ObjectID, fileExtension: String, facts: [UInt8], alias: AliasRecord?, epoch: Epoch,
        storing: Bool
    ) async throws(CacheError) -> PublishOutcome
}
