package import Cache

/// Purges renditions for operators: on this node or, in a cluster, on all nodes; and objects in the shared tier.
package struct RenditionPurger: Sendable {
    private let local: LocalPurger
    private let coordinator: (any NodeCoordinator)?
    private let tier: (any SharedTier)?

    package init(_ local: LocalPurger, coordinator: (any NodeCoordinator)?, tier: (any SharedTier)?) {
        self.local = local
        self.coordinator = coordinator
        self.tier = tier
    }

    /// Forgets what `scope` covers, as ``LocalPurger/purgeThisNode(_:)`` does.
    ///
    /// Only the purge of an object removes it from the shared tier: an alias leads there through the source's bytes, which are
    /// fetched anew after a purge. The tier is waited for as long as it allows.
    ///
    /// - Throws: ``CacheError`` if the purge is not durable on this node and there are no others.
    package func purge(_ scope: PurgeScope) async throws(CacheError) -> PurgeReport {
        let report: PurgeReport
        if let coordinator {
            report = await coordinator.purgeAllNodes(scope)
        } else {
            let result = try await local.purgeThisNode(scope)
            report = PurgeReport(purged: result.purged, bytes: result.bytes)
        }
        if case .object(let id) = scope { await tier?.awaitRemoval(of: id) }
        return report
    }
}
