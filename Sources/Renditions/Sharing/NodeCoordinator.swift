package import Fetch
package import Fleet
package import Store

/// The cooperation of several nodes: one of them runs a miss, and purges reach all.
///
/// A node works alone whenever the others cannot be reached; a call then returns at once or within a short deadline.
package protocol NodeCoordinator: Sendable {
    /// Finds what another node knows about a rendition, waits for the node that runs its miss, or takes the lead.
    ///
    /// - Parameters:
    ///   - rejected: A record that this function returned before and that the caller could not use.
    ///   - failureScope: See ``SharedFailure/details(scope:)``.
    func join(
        _ key: AliasKey, of source: SourceURL, rejecting rejected: SharedRecord?, failureScope: String
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
    case lead(FlightLease)
    /// Another node has run it: the record of its object. `isFollowed` is true if this call waited for it.
    case found(SharedRecord, isFollowed: Bool)
    /// Another node has run it, and it failed.
    case failed(SharedFailure)
    /// This node runs the miss for itself, because the others cannot be reached.
    case alone
}
