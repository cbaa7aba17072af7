internal import Ledger

/// Carries out purges. Every call may block.
struct Purger: Sendable {
    private let context: CacheContext

    init(_ context: CacheContext) {
        self.context = context
    }

    /// See ``Cache/purge(_:madeAt:with:)``.
    func run(
        _ scope: PurgeScope, madeAt time: Int64? = nil, with change: @escaping Ledger.Change = { _ in }
    ) -> Result<PurgeResult, CacheError> {
        let store = context.store
        let (purged, failure) = store.purge(scope, madeAt: time, with: change) {
            // After the rows and still under the lock: a look-up that notes the new epoch does not see the rows, and a publish
            // is either before both, and removed, or after both, and refused.
            context.purges.append(.purge(scope))
        }
        context.reached(.purgeInForce)
        context.hot.remove(scope, removed: purged.objects)
        context.reached(.purgeCooled)
        // The rest follows in the background. No row leads to these files.
        if store.sweep() { context.housekeeping.wake() }
        context.counters.purges.count()
        context.counters.purged.count(purged.renditions)
        if let failure { return .failure(.purgeNotDurable(cause: failure.description)) }
        return .success(PurgeResult(purged: purged.renditions, bytes: purged.bytes))
    }
}
