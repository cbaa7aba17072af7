package import Fleet
package import Store

/// Everything that a purge does: on this node, in the shared tier and on the other nodes.
///
/// It lives as long as the process. Any thread; calls suspend and never block.
package struct Purges: Sendable {
    private let cache: Cache
    private let state: RenditionState
    private let outbox: Outbox?
    /// The longest time that a purge waits for the shared tier.
    private static let removalLimit: Duration = .seconds(2)
    /// The other nodes; nil for a node that works alone.
    package var nodes: (any NodePurger)?

    /// Applies every purge of the cache to work in progress and to remembered failures.
    ///
    /// - Parameter outbox: That of the shared tier.
    package init(cache: Cache, state: RenditionState, outbox: Outbox?) {
        self.cache = cache
        self.state = state
        self.outbox = outbox
        // Work in progress goes on for its present callers; no call that starts after the purge receives its result.
        cache.observePurges { state.invalidate($0) }
    }

    /// Forgets what `scope` covers, for an operator: on all nodes and, if it is an object, in the shared tier.
    ///
    /// Only the purge of an object removes it from the shared tier: an alias leads there through the source's bytes, which are
    /// fetched anew after a purge. Every node sends the removal, in case some nodes cannot reach the tier. The call waits for
    /// the removal for two seconds at most.
    ///
    /// - Parameter limit: The longest wait for other nodes; nil for two seconds.
    /// - Throws: ``CacheError`` if the purge is not durable on this node and there are no others.
    package func purge(_ scope: PurgeScope, within limit: Duration? = nil) async throws(CacheError) -> PurgeReport {
        let report =
            if let nodes {
                await nodes.broadcast(scope, within: limit)
            } else {
                PurgeReport(counts: try await cache.purge(scope))
            }
        if let id = scope.objectID { await outbox?.awaitDeletion(of: id, within: Self.removalLimit) }
        return report
    }

    /// The progress of any node's purge; nil if it is unknown or forgotten.
    ///
    /// - Parameter id: ``PurgeReport/id``.
    /// - Throws: If the other nodes cannot be reached.
    package func progress(of id: String) async throws -> PurgeReport? {
        try await nodes?.progress(of: id)
    }

    /// Requires every origin to confirm its renditions before their next use, and drops the renditions that a former process
    /// has not sent to the shared tier: purges may have been missed. Work in progress goes on for its present callers.
    package func revalidateAll(_ doubt: MissedPurges = .certain) async {
        await cache.revalidateAll(doubt)
        state.invalidate(.all)
    }
}

/// Purges the nodes of a cluster; see ``ClusterPurger``.
package protocol NodePurger: Sendable {
    func broadcast(_ scope: PurgeScope, within limit: Duration?) async -> PurgeReport
    func progress(of id: String) async throws -> PurgeReport?
}

extension ClusterPurger: NodePurger {}
