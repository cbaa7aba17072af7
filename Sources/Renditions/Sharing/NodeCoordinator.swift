package import Cache
package import Fetch
package import Ledger

/// The cooperation of several nodes: one of them runs a miss, and purges reach all.
///
/// A node works alone whenever the others cannot be reached; a call then returns at once or within a short deadline.
package protocol NodeCoordinator: Sendable {
    /// Finds what another node knows about a rendition, waits for the node that runs its miss, or takes the lead.
    ///
    /// - Parameters:
    ///   - rejected: A finding that this function returned before and that the caller could not use.
    ///   - failureScope: See ``SharedFailure/details(scope:)``.
    func join(
        _ key: AliasKey, of source: SourceURL, rejecting rejected: SharedFinding?, failureScope: String
    ) async -> FlightRole

    /// Purges all nodes, this one included: this one first.
    ///
    /// - Parameter limit: The longest wait for other nodes; nil for two seconds.
    func purgeAllNodes(_ scope: PurgeScope, within limit: Duration?) async -> PurgeReport

    /// The progress of any node's purge; nil if it is unknown or forgotten.
    ///
    /// - Parameter id: ``PurgeReport/id``.
    /// - Throws: If the other nodes cannot be reached.
    func progress(ofPurge id: String) async throws -> PurgeReport?
}

/// The role of a node in a miss.
package enum FlightRole: Sendable {
    /// This node runs the miss and then ends the lease.
    case lead(any FlightLease)
    /// Another node has run it. `isFollowed` is true if this call waited for it.
    case found(SharedFinding, isFollowed: Bool)
    /// Another node has run it, and it failed.
    case failed(SharedFailure)
    /// This node runs the miss for itself, because the others cannot be reached.
    case alone
}

/// The exclusive right to run a miss. It is renewed until it ends; releasing the last reference ends it.
package protocol FlightLease: Sendable {
    /// Ends the lease and hands the finding to the waiting nodes. The object must be readable by them.
    func complete(_ finding: SharedFinding) async
    /// Ends the lease and hands the failure to the waiting nodes, and to those that ask within its lifetime.
    func fail(_ failure: SharedFailure) async
    /// Ends the lease without a finding, so that a waiting node takes the lead.
    func release() async
}

/// What a node knows about a rendition of a source.
package struct SharedFinding: Sendable, Equatable {
    package let object: ObjectID
    package let fileExtension: String
    package let validators: Validators
    /// The time of the origin's response by ``TimeSource/steadySeconds``.
    package let fetchedAt: Int64
    /// Seconds of freshness, if the origin limits them.
    package let freshFor: Int64?
    /// Whether the origin forbids to use the response once it is stale.
    package let mustRevalidate: Bool
    /// The earliest time at which the request to the origin may have begun, in milliseconds of the cluster's clock.
    package let began: Int64
    /// What the coordinator has received, by which it recognises the finding; empty for one of this node.
    package let record: [UInt8]

    package init(
        object: ObjectID, fileExtension: String, validators: Validators, fetchedAt: Int64, freshFor: Int64?,
        mustRevalidate: Bool = false, began: Int64 = .max, record: [UInt8] = []
    ) {
        self.object = object
        self.fileExtension = fileExtension
        self.validators = validators
        self.fetchedAt = fetchedAt
        self.freshFor = freshFor
        self.mustRevalidate = mustRevalidate
        self.began = began
        self.record = record
    }

    /// The finding of a rendition that was found or published under an alias; nil for an upload.
    init?(_ rendition: CachedRendition) {
        guard let alias = rendition.alias else { return nil }
        self.init(
            object: rendition.objectID, fileExtension: rendition.fileExtension, validators: alias.validators,
            fetchedAt: alias.fetchedAt, freshFor: alias.freshFor, mustRevalidate: alias.mustRevalidate,
            began: rendition.epoch.began)
    }

    /// The alias of the local cache.
    func alias(of request: RenditionRequest) -> AliasRecord {
        AliasRecord(
            key: request.key, sourceURL: request.source.canonical, rendition: request.rendition.canonicalText,
            validators: validators, fetchedAt: fetchedAt, freshFor: freshFor, mustRevalidate: mustRevalidate)
    }
}
