internal import Synchronization
internal import SystemIO

/// Carries out purges. Every call may block.
struct Purger: Sendable {
    let context: CacheContext
    private var index: CacheIndex { context.index }

    /// See ``Cache/purge(_:with:)``.
    ///
    /// - Parameter isObserved: False if the origin removed the source: work in progress found this out, so it must not be
    ///   overtaken.
    func run(
        _ new: [Purge], with change: @escaping Ledger.Change = { _ in }, isObserved: Bool = true
    ) -> Result<PurgeCounts, CacheError> {
        // The purge enters the index under the lock that publishes take: a publish is either earlier, and covered, or later,
        // and refused.
        let (result, outbox) = index.changes.withLock { ($0.purge(new, with: change), $0.outbox) }
        context.reached(.purgeInForce)
        var counts = PurgeCounts()
        for (purge, sequence) in result.purges {
            context.hot.remove(purge.scope, removed: index.query { try $0.objects(of: purge.scope) } ?? nil)
            context.reached(.purgeCooled)
            if let id = purge.scope.objectID { outbox?.sendDeletion(of: id) }
            if isObserved { for observer in context.purgeObservers.withLock({ $0 }) { observer(purge.scope) } }
            counts.add(index.count(purge, sequence))
        }
        // The rest follows in the background. No look-up finds these rows.
        var sweeps = 0
        while sweeps < Self.sweepsAtOnce, index.changes.withLock({ $0.sweep() }) { sweeps += 1 }
        if sweeps == Self.sweepsAtOnce { context.housekeeping.wake() }
        context.counters.update { counters in
            counters.purges += Int64(result.purges.count)
            counters.purged += counts.purged
        }
        if let failure = result.failure { return .failure(.purgeNotDurable(cause: failure.description)) }
        return .success(counts)
    }

    private static let sweepsAtOnce = 8
}
