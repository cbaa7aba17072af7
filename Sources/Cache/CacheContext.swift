internal import Synchronization
internal import SystemIO

/// What the parts of a ``Cache`` share. Any thread.
final class CacheContext: Sendable {
    let configuration: CacheConfiguration
    let clock: CacheClock
    let hot: HotRenditions
    let purges = PurgeLog()
    let revalidation: RevalidationMark
    let verified = VerifiedObjects()
    let counters = CacheCounters()
    /// Runs housekeeping; woken when there is work for it.
    let housekeeping: RepeatingThread
    private let currentStore: Mutex<Store>
    /// The purges before the open store was lost; nil if it is in place. The thread of housekeeping changes it.
    private let lossEpoch = Mutex<Epoch?>(nil)
    private let report: @Sendable (CacheEvent) -> Void
    /// Called at each ``Step``; only tests set it.
    private let onStep: (@Sendable (Step) -> Void)?

    /// Opens the store.
    init(
        configuration: CacheConfiguration, clock: CacheClock, report: @escaping @Sendable (CacheEvent) -> Void,
        onStep: (@Sendable (Step) -> Void)?
    ) throws(CacheError) {
        try configuration.validate()
        let store = try Store(path: configuration.directory, report: report)
        self.configuration = configuration
        self.clock = clock
        self.report = report
        self.onStep = onStep
        currentStore = Mutex(store)
        revalidation = RevalidationMark(store.directory, before: store.nextSequence)
        hot = HotRenditions(limit: configuration.hotEntries, purges: purges, onStep: onStep)
        housekeeping = RepeatingThread(interval: configuration.housekeepingInterval)
        if let free = try? store.directory.freeBytes(), free < configuration.minFreeBytes {
            report(.freeSpaceBelowMinimum(free: free, minimum: configuration.minFreeBytes))
        }
    }

    /// The open store; another one after the directory was removed while in use.
    var store: Store { currentStore.withLock { $0 } }

    /// Starts afresh if the directory or its journal was removed or replaced: closes the store and opens the directory at the
    /// path, creating it if needed.
    ///
    /// The removal of a cache's directory is meant to remove its contents, so work in progress is not stored. The same directory may
    /// return, so purges that the closed store could not record are applied to what is found.
    func reopenStoreIfLost() {
        let lost = store
        // After ``Cache/close()`` the store must stay closed.
        guard !lost.isInPlace, !housekeeping.isEnding else { return }
        let epoch = lossEpoch.withLock { epoch in
            epoch = epoch ?? purges.epoch
            return epoch ?? purges.epoch
        }
        // Releases the locks: some of the files may be the same in the new store.
        lost.close()
        // On failure hits from memory continue, publishes are not stored, and the next round tries again.
        guard let found = try? Store(path: configuration.directory, report: report)
        else { return }
        let applied = applyPurges(since: epoch, to: found)
        currentStore.withLock { $0 = found }
        // A purge that still used the closed store is in the log by now, or is repeated; see ``Purger/run(_:)``.
        _ = applyPurges(since: applied, to: found)
        lossEpoch.withLock { $0 = nil }
        revalidation.reload(from: found.directory, before: found.nextSequence)
        report(.directoryReplaced(path: configuration.directory))
        purges.append(.all)
        hot.removeAll()
        verified.removeAll()
    }

    /// Applies purges that a closed store could not record.
    ///
    /// - Returns: The epoch after them.
    private func applyPurges(since epoch: Epoch, to store: Store) -> Epoch {
        let (scopes, next) = purges.scopes(since: epoch)
        for scope in scopes {
            store.catchUp()
            let removed = store.applyPurge(scope) {}.removed.objects
            for start in stride(from: 0, to: removed.count, by: Purger.filesPerTurn) {
                store.removeFiles(of: Array(removed[start..<min(start + Purger.filesPerTurn, removed.count)]))
            }
        }
        return next
    }

    @inline(__always)
    func reached(_ step: Step) {
        onStep?(step)
    }
}

/// The objects whose bytes were compared with their SHA-256 since the start, so that they are hashed only once.
///
/// Bounded: when it is full, it is emptied, and objects are hashed again. Any thread.
final class VerifiedObjects: Sendable {
    private let sequences = Mutex<Set<Int64>>([])
    private let limit: Int

    init(limit: Int = 1 << 18) {
        self.limit = limit
    }

    func contains(_ sequence: Int64) -> Bool {
        sequences.withLock { $0.contains(sequence) }
    }

    func insert(_ sequence: Int64) {
        sequences.withLock { sequences in
            if sequences.count >= limit { sequences.removeAll() }
            sequences.insert(sequence)
        }
    }

    func removeAll() {
        sequences.withLock { $0 = [] }
    }
}
