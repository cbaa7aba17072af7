package import Cache

/// A store of finished renditions that several nodes share, behind the local cache.
///
/// Every operation may fail at any time without an effect on the request: the pipeline then produces the rendition itself.
package protocol SharedTier: Sendable {
    /// Receives an object into a staged file of the local cache.
    ///
    /// The content of the file is undefined unless the object was found, and its length and digest were verified.
    func load(_ id: ObjectID, fileExtension: String, into file: StagedFile) async -> SharedLookUp

    /// Stores a rendition. Returns within a deadline of the tier: other nodes wait for the lease that ends afterwards.
    ///
    /// - Returns: Whether other nodes can read it now. If not, the tier stores it as soon as it can.
    func save(_ rendition: CachedRendition) async -> Bool

    /// Queues the deletion of an object, and refuses to load the object until the deletion has been sent. If the tier cannot be reached,
    /// the deletion is sent as soon as it can. A rendition that is saved afterwards is stored after the deletion. One that was created
    /// before is not loaded either if another node stores it afterwards.
    ///
    /// - Returns: Whether the queued deletion survives a crash.
    func remove(_ id: ObjectID) async -> Bool

    /// Drops the renditions of a former process that wait to be stored, and that are held until missed purges have been applied.
    /// Suspends until they are not found after a restart either.
    func dropHeldWrites() async

    /// Suspends until the queued deletion of an object was sent, an attempt has failed, or a deadline of the tier has passed.
    func awaitRemoval(of id: ObjectID) async
}

/// What the shared tier answers about an object.
package enum SharedLookUp: Sendable {
    case found(SharedObject)
    case absent
    /// The tier cannot be reached, or cannot tell in time.
    case unavailable
}

/// The description of an object in the shared tier.
package struct SharedObject: Sendable {
    /// The facts that were published with it.
    package let facts: [UInt8]

    package init(facts: [UInt8]) {
        self.facts = facts
    }
}
