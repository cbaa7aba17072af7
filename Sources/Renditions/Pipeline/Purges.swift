package import Cache
package import Cluster
package import Ledger

/// Everything that a purge does: on this node, in the shared tier and on the other nodes.
///
/// It lives as long as the process. Any thread; calls suspend and never block.
package struct Purges: Sendable {
    private let cache: Cache
    private let state: RenditionState
    private let tier: (any SharedTier)?
    /// The other nodes; nil for a node that works alone.
    package var coordinator: (any NodeCoordinator)?

    package init(cache: Cache, state: RenditionState, tier: (any SharedTier)?) {
        self.cache = cache
        self.state = state
        self.tier = tier
    }

    /// Forgets what `scope` covers, for an operator: on all nodes, and an object in the shared tier.
    ///
    /// Only the purge of an object removes it from the shared tier: an alias leads there through the source's bytes, which are
    /// fetched anew after a purge. The tier is waited for as long as it allows.
    ///
    /// - Parameter limit: The longest wait for other nodes; nil for two seconds.
    /// - Throws: ``CacheError`` if the purge is not durable on this node and there are no others.
    package func purge(_ scope: PurgeScope, within limit: Duration? = nil) async throws(CacheError) -> PurgeReport {
        let report: PurgeReport
        if let coordinator {
            report = await coordinator.purgeAllNodes(scope, within: limit)
        } else {
            let result = try await purgeThisNode(scope)
            report = PurgeReport(purged: result.purged, bytes: result.bytes)
        }
        if case .object(let id) = scope { await tier?.awaitRemoval(of: id) }
        return report
    }

    /// The progress of any node's purge; nil if it is unknown or forgotten.
    ///
    /// - Parameter id: ``PurgeReport/id``.
    /// - Throws: If the other nodes cannot be reached.
    package func progress(of id: String) async throws -> PurgeReport? {
        try await coordinator?.progress(ofPurge: id)
    }

    /// Forgets what `scope` covers on this node: stored renditions, work in progress, and remembered failures. Work in progress goes on
    /// for its present callers; calls that start after this one returns do not see it.
    ///
    /// The purge of an object is a deletion in the shared tier, which every node sends: one that cannot reach the tier does not leave the
    /// object to the others, and an object that waits to be sent is withdrawn on the node that has it.
    ///
    /// - Parameters:
    ///   - time: For a purge that was made earlier, seconds since 1970: what was fetched or uploaded in a later second stays.
    ///   - place: Records the purge's place in the stream of the cluster.
    /// - Throws: ``CacheError`` if the purge is not durable; it still applies until the next start.
    package func purgeThisNode(
        _ scope: PurgeScope, madeAt time: Int64? = nil, at place: @escaping Ledger.Change = { _ in }
    ) async throws(CacheError) -> PurgeResult {
        let object: ObjectID? = if case .object(let id) = scope { id } else { nil }
        if let object { tier?.hide(object, createdUntil: time) }
        let result: Result<PurgeResult, CacheError>
        do throws(CacheError) {
            // The rows, the deletion and the place are one transaction: a crash leaves all of them or none.
            let purged = try await cache.purge(scope, madeAt: time) { [tier] database in
                if let object { try tier?.recordRemoval(of: object, createdUntil: time, in: database) }
                try place(database)
            }
            result = .success(purged)
        } catch {
            result = .failure(error)
        }
        state.invalidate(scope)
        if let object { tier?.sendRemoval(of: object) }
        return try result.get()
    }

    /// Has every origin asked before one of its renditions is used again, and drops the renditions that a former process has not
    /// sent to the shared tier: purges may have been missed. Work in progress goes on for its present callers.
    package func revalidateAll(_ doubt: MissedPurges = .certain) async {
        await cache.revalidateAll(doubt) { [tier] database in try tier?.dropHeldWrites(in: database) }
        state.invalidate(.all)
    }

    /// Records a place in the stream of the cluster after all purges so far.
    package func record(_ place: @escaping Ledger.Change) async {
        await cache.record(place)
    }
}

extension PurgeHandlers {
    /// The part of this node in purges of the cluster.
    package init(_ purges: Purges) {
        self.init(
            purgeLocalCache: { purge, time, place in
                guard let scope = PurgeScope(purge) else {
                    await purges.record(place)
                    return PurgeCounts(purged: 0, bytes: 0)
                }
                do throws(CacheError) {
                    let result = try await purges.purgeThisNode(scope, madeAt: time.map { $0 / 1000 }, at: place)
                    return PurgeCounts(purged: result.purged, bytes: result.bytes)
                } catch {
                    // The purge applies until the next start.
                    return nil
                }
            },
            revalidateEverything: { await purges.revalidateAll($0) }, record: { await purges.record($0) })
    }
}

extension PurgeScope {
    /// Nil for an object id that is none.
    package init?(_ purge: ClusterPurge) {
        switch purge {
        case .url(let url): self = .url(url)
        case .prefix(let prefix): self = .prefix(prefix)
        case .object(let id):
            guard let object = ObjectID(hex: id) else { return nil }
            self = .object(object)
        case .all: self = .all
        }
    }
}
