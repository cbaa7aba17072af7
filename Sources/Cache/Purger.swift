internal import SystemIO

/// Carries out purges. Every call may block.
struct Purger: Sendable {
    private let context: CacheContext
    /// A thread of its own, so that a purge never waits behind publishes.
    private let threads: any BlockingWork

    init(_ context: CacheContext, threads: any BlockingWork) {
        self.context = context
        self.threads = threads
    }

    /// See ``Cache/purge(_:)``.
    func run(_ scope: PurgeScope) -> Result<PurgeResult, CacheError> {
        let store = context.store
        // Only an index that has applied the whole journal contains all that is covered.
        store.catchUp()
        var isIncomplete = false
        let (removed, failure) = store.applyPurge(scope) {
            // After the index and still under the lock: a look-up that notes the new epoch reads the new index, and a publish
            // is either before both, and removed, or after both, and refused.
            context.purges.append(scope)
            isIncomplete = store.isCatchingUp
        }
        // The store was replaced meanwhile, and the purges of the closed one were applied to the new one without this.
        if failure != nil, context.store !== store { return run(scope) }
        context.reached(.purgeInForce)
        context.hot.remove(scope, removed: Set(removed.objects.map(\.record.id)))
        // An index that is incomplete or closed does not tell which objects are covered.
        if isIncomplete || failure != nil { context.hot.removeObjects() }
        context.reached(.purgeCooled)
        let first = removed.objects.prefix(Self.filesPerTurn)
        store.removeFiles(of: Array(first))
        removeFilesLater(removed.objects.dropFirst(first.count), in: store)

        let result = PurgeResult(
            purged: removed.aliases + removed.unaliased, bytes: removed.objects.reduce(0) { $0 + $1.record.length })
        if store.isCatchingUp { context.housekeeping.wake() }
        context.counters.purges.count()
        context.counters.purged.count(result.purged)
        if let failure { return .failure(.purgeNotDurable(cause: failure.description)) }
        return .success(result)
    }

    /// Removes the files of a large purge after it has returned, between other purges. No row leads to them.
    private func removeFilesLater(_ objects: ArraySlice<ObjectRow>, in store: Store) {
        guard !objects.isEmpty else { return }
        let isQueued = threads.submit {
            let turn = objects.prefix(Self.filesPerTurn)
            store.removeFiles(of: Array(turn))
            removeFilesLater(objects.dropFirst(turn.count), in: store)
        }
        // The cache is closing: the next start removes the files as orphans.
        if !isQueued { store.expectOrphans() }
    }

    /// The files that are removed without a pause for other changes.
    static let filesPerTurn = 512
}
