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
    /// Locked while the store is replaced, and while its revalidation mark is moved.
    private let lostStores = Mutex(LostStores())
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
    /// The removal of a cache's directory is meant to remove its contents, so work in progress is not stored. A lost directory may
    /// return, even after others, so what it has missed since its loss is applied to it.
    func reopenStoreIfLost() {
        // After ``Cache/close()`` the store must stay closed.
        guard !store.isInPlace, !housekeeping.isEnding else { return }
        lostStores.withLock { replaceStore(&$0) }
    }

    private func replaceStore(_ lostStores: inout LostStores) {
        let lost = store
        // Before the store is closed: after that it records no purge.
        let lossEpoch = purges.epoch
        lost.retryFailedChanges()
        let isMarkWritten = revalidation.writeAgain(to: lost.directory)
        // Releases the locks: some of the files may be the same in the new store.
        lost.close()
        // Purges in force that it could not record may be any of those so far.
        let hasRecordedAll = isMarkWritten && !lost.hasUnrecordedPurges
        lostStores.insert(lost.journalIdentity, lostAt: hasRecordedAll ? lossEpoch : .beginning)
        // On failure hits from memory continue, publishes are not stored, and the next round tries again.
        guard let found = try? Store(path: configuration.directory, report: report)
        else { return }
        var epoch = lostStores.epoch(of: found.journalIdentity, inPlaceOf: lost.journalIdentity)
        // Nothing of the closed store gets into memory after this, so only aliases of the found one are compared with its mark.
        purges.append(.replacement)
        hot.removeAll()
        verified.removeAll()
        revalidation.reload(
            from: found.directory, before: found.nextSequence, coveringAll: purges.missed(since: epoch).hasRevalidation)
        repeat { epoch = applyPurges(since: epoch, to: found) } while !use(found, at: epoch)
        lostStores.remove(found.journalIdentity)
        report(.directoryReplaced(path: configuration.directory))
    }

    /// Applies the purges that a store has missed.
    ///
    /// - Returns: The epoch after them.
    private func applyPurges(since epoch: Epoch, to store: Store) -> Epoch {
        let missed = purges.missed(since: epoch)
        for scope in missed.purges {
            store.catchUp()
            let removed = store.applyPurge(scope) {}.removed.objects
            for start in stride(from: 0, to: removed.count, by: Purger.filesPerTurn) {
                store.removeFiles(of: Array(removed[start..<min(start + Purger.filesPerTurn, removed.count)]))
            }
        }
        return missed.next
    }

    /// Makes a store the open one, unless a purge came after `epoch`: it may have used the closed store.
    private func use(_ found: Store, at epoch: Epoch) -> Bool {
        currentStore.withLock { store in
            // A purge after this comparison is repeated with the found store; see ``Purger/run(_:)``.
            guard purges.epoch == epoch else { return false }
            store = found
            return true
        }
    }

    /// See ``Cache/revalidateAll()``. May block.
    func revalidateAll() {
        // First: what is stored between this and the mark is before the mark.
        purges.append(.revalidation)
        // Locked, so that the mark of one store is not set for another one.
        lostStores.withLock { _ in
            let current = store
            try? revalidation.set(current.nextSequence, in: current.directory)
        }
    }

    /// Writes the mark of a revalidation to the directory if that has failed. May block.
    func retryRevalidationMark() {
        lostStores.withLock { _ in
            _ = revalidation.writeAgain(to: store.directory)
        }
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

/// Where a ``Cache`` does its blocking work.
struct CacheThreads: Sendable {
    /// Creates the executor of one kind of work.
    ///
    /// - Parameters: The number of closures that run at the same time, the maximum number that wait, and a name of at most 15
    ///   bytes.
    let create: @Sendable (_ count: Int, _ limit: Int, _ name: String) -> any BlockingWork
    /// Whether housekeeping has a thread of its own. Otherwise the owner of the cache runs ``Housekeeper/runRound()``.
    let includeHousekeeping: Bool

    /// Threads of the operating system.
    static let system = CacheThreads(
        create: { WorkThreads(count: $0, limit: $1, name: $2) }, includeHousekeeping: true)
}
