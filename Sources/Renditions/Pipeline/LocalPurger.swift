package import Cache
package import Cluster

/// Purges renditions on this node: stored ones, work in progress, and remembered failures. After the purge of an object, this node
/// does not load it from the shared tier either.
///
/// It lives as long as the process. Any thread; calls suspend and never block.
package struct LocalPurger: Sendable {
    private let cache: any RenditionCache
    private let state: RenditionState
    private let tier: (any SharedTier)?

    package init(cache: any RenditionCache, state: RenditionState, tier: (any SharedTier)?) {
        self.cache = cache
        self.state = state
        self.tier = tier
    }

    /// Forgets what `scope` covers. Work in progress goes on for its present callers; no call that starts after this one has
    /// returned gets anything of it.
    ///
    /// - Throws: ``CacheError`` if the purge is not durable; it is in force until the next start all the same.
    package func purgeThisNode(_ scope: PurgeScope) async throws(CacheError) -> PurgeResult {
        // Before the cache forgets the object, so that it is not loaded again. Every node does this: one that cannot reach the tier
        // does not leave the object to the others, and an object that waits to be sent is withdrawn on the node that has it.
        if case .object(let id) = scope, let tier { _ = await tier.remove(id) }
        let result: Result<PurgeResult, CacheError>
        do throws(CacheError) {
            result = .success(try await cache.purge(scope))
        } catch {
            result = .failure(error)
        }
        state.invalidate(scope)
        // Again, because the cache had the object until now: it may have been found and saved behind the first deletion. A save
        // that is queued later finds the purge in the cache.
        var isTierDurable = true
        if case .object(let id) = scope, let tier { isTierDurable = await tier.remove(id) }
        let purged = try result.get()
        guard isTierDurable else {
            throw .purgeNotDurable(cause: "The deletion from the shared store could not be written to the disk.")
        }
        return purged
    }

    /// Has every origin asked before one of its renditions is used again, and drops the renditions that a former process has not
    /// sent to the shared tier: purges may have been missed. Work in progress goes on for its present callers.
    func revalidateAll() async {
        await tier?.dropHeldWrites()
        await cache.revalidateAll()
        state.invalidate(.all)
    }
}

extension PurgeHandlers {
    /// The part of this node in purges of the cluster.
    package init(_ purger: LocalPurger) {
        self.init(
            purgeLocalCache: { purge in
                guard let scope = PurgeScope(purge) else { return PurgeCounts(purged: 0, bytes: 0) }
                do throws(CacheError) {
                    let result = try await purger.purgeThisNode(scope)
                    return PurgeCounts(purged: result.purged, bytes: result.bytes)
                } catch {
                    // The purge is in force until the next start.
                    return nil
                }
            }, revalidateEverything: { await purger.revalidateAll() })
    }
}

extension PurgeScope {
    /// Nil for an object id that is none.
    fileprivate init?(_ purge: ClusterPurge) {
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
