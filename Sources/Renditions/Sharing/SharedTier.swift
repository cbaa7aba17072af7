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

    /// Records the removal of an object in the transaction of its purge. After the transaction, the object is not loaded until the removal
    /// was sent, and what was to be saved of it is withdrawn. If the tier cannot be reached, the removal is sent as soon as it can. A
    /// rendition that is saved afterwards is stored after the removal. ``sendRemoval(of:)`` must follow.
    ///
    /// - Parameter time: Only what began until then is removed, in milliseconds of the cluster's clock.
    func recordRemoval(of id: ObjectID, until time: Int64, in database: SQLiteConnection) throws

    /// Sends a removal that was recorded. Returns at once.
    func sendRemoval(of id: ObjectID)

    /// Suspends until the removal of an object was sent, an attempt has failed, or a deadline of the tier has passed.
    func awaitRemoval(of id: ObjectID) async

    /// Drops the renditions of a former process that wait to be stored, and that are held until missed purges have been applied.
    func dropHeldWrites(in database: SQLiteConnection) throws
}

/// The shared tier's answer about an object.
package enum SharedLookUp: Sendable {
    case found(StoredRecord)
    case absent
    /// The tier cannot be reached, or cannot tell in time.
    case unavailable
}
