package import Store

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

    /// Stores a rendition, unless its object was purged since it was published. Returns within a deadline of the tier: other nodes wait for
    /// the lease that ends afterwards.
    ///
    /// - Returns: Whether other nodes can read it now. If not, the tier stores it as soon as it can.
    func save(_ rendition: CachedRendition) async -> Bool

    /// Suspends until the removal of an object that was purged was sent, an attempt has failed, or a deadline of the tier has passed.
    func awaitRemoval(of id: ObjectID) async
}

/// The shared tier's answer about an object.
package enum SharedLookUp: Sendable {
    case found(StoredRecord)
    case absent
    /// The tier cannot be reached, or cannot tell in time.
    case unavailable
}
