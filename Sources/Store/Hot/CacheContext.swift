internal import Synchronization
internal import SystemIO

/// The state shared by the parts of a ``Cache``: an open directory with its files and its ledger, the lock that serializes all
/// changes to them, and the renditions in memory.
///
/// **Order of a publish**: the name of the file, the row, the table in memory. **Order of a purge**: the rows, the table in
/// memory, the files. **Order of an eviction**: the files, the rows. A crash between two steps leaves a file without a row,
/// which is removed later, or a row without a file, which is a miss.
///
/// Lookups take no lock. Calls of the ledger and the directory may block: not for I/O threads.
final class CacheContext: Sendable {
    /// The configuration at startup. ``maxBytes`` and ``minFreeBytes`` may change later.
    let configuration: CacheConfiguration
    let limits: Mutex<(maxBytes: Int64, minFreeBytes: Int64)>
    let clock: TimeSource
    let directory: CacheDirectory
    let ledger: Ledger
    /// Changes the files and the rows, one change at a time. The lock may be held while a disk syncs.
    let changes: Mutex<IndexChanges>
    let status: IndexStatus
    let doubts: AliasDoubts
    let purges: PurgeIndex
    let hot: HotRenditions
    /// This node's estimate of the cluster's clock.
    let sharedClock: SharedClock
    let verified = VerifiedObjects()
    /// The work counters. Stored contents and hits of the hot tables are counted elsewhere.
    let counters = Meter(CacheStatistics())
    /// Runs housekeeping; woken when there is work for it.
    let housekeeping: RepeatingThread
    /// Whether, since the last round of housekeeping, the disk refused a file although statvfs(3) showed space.
    let isOverQuota = Atomic(false)
    /// The size of the largest file that the free space did not admit since the last round of housekeeping.
    let refusedBytes = Atomic<Int64>(0)
    /// Observers that apply each purge to work in progress and to remembered failures. They may retain the cache.
    let purgeObservers = Mutex<[@Sendable (PurgeScope) -> Void]>([])
    /// Receives the renditions that are stored after their publishers have returned. It may retain the cache.
    let lateObserver = Mutex<(@Sendable (CachedRendition) -> Void)?>(nil)
    let report: @Sendable (CacheEvent) -> Void
    /// Called at each ``Step``; only tests set it.
    private let onStep: (@Sendable (Step) -> Void)?

    /// Opens and locks the directory. Begins with an empty cache if the ledger is missing or damaged.
    init(
        configuration: CacheConfiguration, owners: [Ledger.Tables] = [], clock: TimeSource = .system,
        report: @escaping @Sendable (CacheEvent) -> Void = { _ in }, onStep: (@Sendable (Step) -> Void)? = nil
    ) throws(CacheError) {
        let housekeeping = RepeatingThread(every: configuration.housekeepingInterval)
        let sharedClock = SharedClock(clock)
        let purges = PurgeIndex(now: { sharedClock.earliest })
        let directory = try CacheDirectory(path: configuration.directory)
        let state: CacheState
        var failure: LedgerError?
        do throws(LedgerError) {
            ledger = try Self.openLedger(in: directory, [CacheTables.owned, PurgeTable.owned, OutboxTables.owned] + owners)
            if let cause = ledger.replacedBecause { report(.ledgerReplaced(cause: cause)) }
            do throws(LedgerError) {
                state = try Self.begin(ledger, purges)
            } catch {
                if error.kind == .damage {
                    try ledger.replaceDamaged()
                    report(.ledgerReplaced(cause: error.description))
                    state = try Self.begin(ledger, purges)
                } else {
                    // A full or read-only disk: stored renditions can still be served.
                    failure = error
                    report(.storingStopped(cause: error.description))
                    state = try Self.readState(ledger, purges)
                }
            }
        } catch {
            throw .ledgerUnusable(path: directory.path(of: Ledger.fileName), cause: error.description)
        }
        // Makes the name of a new ledger durable.
        try? directory.syncNames()
        let status = IndexStatus(state.totals, refusal: failure.map { UnstoredReason($0) })
        doubts = AliasDoubts(certain: state.revalidated, possible: state.unconfirmed)
        changes = Mutex(
            IndexChanges(
                state, in: directory, ledger, status, purges, failure: failure, clock: clock, report: report,
                onFailure: { housekeeping.wake() }))
        hot = HotRenditions(limit: configuration.hotEntries, purges: purges, onStep: onStep)
        limits = Mutex((configuration.maxBytes, configuration.minFreeBytes))
        (self.directory, self.status, self.purges) = (directory, status, purges)
        (self.housekeeping, self.sharedClock, self.clock) = (housekeeping, sharedClock, clock)
        (self.configuration, self.report, self.onStep) = (configuration, report, onStep)
        if let free = try? directory.space().freeBytes, free < configuration.minFreeBytes {
            report(.freeSpaceBelowMinimum(free: free, minimum: configuration.minFreeBytes))
        }
    }

    /// Opens the ledger. On a full disk, the reserve gives the space that the ledger needs.
    private static func openLedger(
        in directory: CacheDirectory, _ owners: [Ledger.Tables]
    ) throws(LedgerError) -> Ledger {
        do throws(LedgerError) {
            return try Ledger(directory: directory.path, owners: owners)
        } catch {
            guard error.kind == .fullDisk else { throw error }
            directory.giveUpReserve()
            return try Ledger(directory: directory.path, owners: owners)
        }
    }

    private static func begin(_ ledger: Ledger, _ purges: PurgeIndex) throws(LedgerError) -> CacheState {
        let state = try readState(ledger, purges)
        // Written durably: after a power loss, the cache must not seem to have been closed.
        try ledger.write(.full) { try CacheTables($0, purges).setClean(false, hand: state.hand) }
        return state
    }

    /// Reads the state, and loads the purges into the index.
    private static func readState(_ ledger: Ledger, _ purges: PurgeIndex) throws(LedgerError) -> CacheState {
        var (state, rows, floor) = try ledger.read { database in
            let table = PurgeTable(database)
            // The outbox opens later, and cannot replace the ledger.
            try OutboxTables(database).check()
            return (try CacheTables(database, purges).state(), try table.all(), try table.floor())
        }
        state.sequence = max(state.sequence, rows.last?.sequence ?? 0, floor.sequence)
        purges.load(rows, floor: floor, latest: state.sequence)
        return state
    }

    var maxBytes: Int64 { limits.withLock(\.maxBytes) }

    var minFreeBytes: Int64 { limits.withLock(\.minFreeBytes) }

    @inline(__always)
    func reached(_ step: Step) {
        onStep?(step)
    }

    /// Stops storing if the paths no longer lead to the directory and its ledger. This lasts until a restart, because the contents
    /// of the path may now belong to another server.
    func checkPlace() {
        guard !status.isLost, !directory.isInPlace || !ledger.isInPlace, !changes.withLock({ $0.isClosed }) else { return }
        status.setLost()
        report(.directoryLost(path: directory.path))
    }

    // MARK: Queries

    func query<Result>(_ body: (CacheTables) throws -> Result) -> Result? {
        let replacements = ledger.replacements
        do throws(LedgerError) {
            return try ledger.read { try body(CacheTables($0, purges)) }
        } catch {
            if error.kind == .damage { note(error, after: replacements) }
            return nil
        }
    }

    /// Notes an error of work outside the lock, unless the database was replaced meanwhile.
    private func note(_ error: LedgerError, after replacements: Int) {
        changes.withLock { if ledger.replacements == replacements { $0.note(error) } }
    }

    /// Makes all changes durable. A power loss before that loses renditions, but no purges.
    func sync() {
        let replacements = ledger.replacements
        do throws(LedgerError) {
            try ledger.sync()
        } catch {
            note(error, after: replacements)
        }
    }

    /// See ``IndexChanges/repair()``. Work in progress is not stored in a new ledger.
    func repair() -> Bool {
        changes.withLock { changes in
            guard changes.repair() else { return false }
            purges.overtakeAll(changes.takeSequences(1))
            return true
        }
    }

    // MARK: Purges

    /// Counts what a purge removes, and then allows its sweep.
    func count(_ purge: Purge, _ sequence: Int64) -> PurgeCounts {
        defer { _ = changes.withLock { $0.counted.remove(sequence) } }
        return query { try $0.count(purge, sequence) } ?? PurgeCounts()
    }

    /// Gives an announced doubt of every alias its place in the order; durable unless the ledger fails.
    ///
    /// - Parameters:
    ///   - missesPurges: Whether purges of objects may have been missed, too. Then the same transaction drops the puts that the
    ///     outbox holds.
    ///   - includesUploads: Whether uploads count no longer.
    func revalidateAll(_ doubt: MissedPurges, missesPurges: Bool, includesUploads: Bool) {
        changes.withLock { changes in
            let outbox = missesPurges ? changes.outbox : nil
            let sequence = changes.takeSequences(1)
            purges.overtakeAll(sequence)
            doubts.doubt(doubt, includingUploads: includesUploads, through: sequence)
            changes.recordOrRemember(
                .init(doubt: (doubt, sequence)) { database in
                    try outbox?.dropHeldPuts(in: database)
                    if includesUploads {
                        try database.run("UPDATE objects SET upload = 0, upload_began = 0 WHERE upload > 0")
                    }
                })
        }
    }
}

/// The objects whose bytes were compared with their SHA-256 since the start, so that they are hashed only once.
///
/// Bounded: when it is full, it is emptied, and objects are hashed again. Any thread.
final class VerifiedObjects: Sendable {
    private static let limit = 1 << 18

    private let sequences = Mutex<Set<Int64>>([])

    func contains(_ sequence: Int64) -> Bool {
        sequences.withLock { $0.contains(sequence) }
    }

    func insert(_ sequence: Int64) {
        sequences.withLock { sequences in
            if sequences.count >= Self.limit { sequences.removeAll() }
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

    static let system = CacheThreads(
        create: { WorkThreads(count: $0, limit: $1, name: $2) }, includeHousekeeping: true)
}
