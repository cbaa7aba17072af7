internal import Synchronization
internal import SystemIO

/// An open directory with its files and its ledger, and the lock that serializes all changes to them.
///
/// **Order of a publish**: the name of the file, the row, the table in memory. **Order of a purge**: the rows, the table in
/// memory, the files. **Order of an eviction**: the files, the rows. A crash between two steps leaves a file without a row,
/// which is removed later, or a row without a file, which is a miss.
///
/// Lookups take no lock. Every call may block: not for I/O threads.
final class CacheIndex: Sendable {
    let directory: CacheDirectory
    let ledger: Ledger
    private let report: @Sendable (CacheEvent) -> Void
    /// Changes the files and the rows, one change at a time. The lock may be held while a disk syncs.
    let changes: Mutex<IndexChanges>
    let status: IndexStatus
    let doubts: AliasDoubts
    private let purges: PurgeIndex

    /// Opens and locks the directory. Begins with an empty cache if the ledger is missing or damaged.
    ///
    /// - Parameters:
    ///   - purges: Must be empty; receives the recorded purges.
    ///   - onFailure: Called when a repair is due; it must not block.
    init(
        path: String, owners: [Ledger.Tables] = [], purges: PurgeIndex = PurgeIndex(), clock: TimeSource = .system,
        report: @escaping @Sendable (CacheEvent) -> Void = { _ in }, onFailure: @escaping @Sendable () -> Void = {}
    ) throws(CacheError) {
        let directory = try CacheDirectory(path: path)
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
        self.directory = directory
        self.report = report
        self.purges = purges
        let status = IndexStatus(state.totals, refusal: failure.map { UnstoredReason($0) })
        self.status = status
        doubts = AliasDoubts(certain: state.revalidated, possible: state.unconfirmed)
        changes = Mutex(
            IndexChanges(
                state, in: directory, ledger, status, purges, failure: failure, clock: clock, report: report,
                onFailure: onFailure))
    }

    /// Opens the ledger. On a full disk, the reserve gives the space that its migration needs.
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

    /// Records that every file has a row, closes the ledger, and unlocks the directory. A second call does nothing.
    func close() {
        changes.withLock { $0.close() }
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

    /// Tries to end a failure: replaces a damaged ledger, and records what could not be recorded.
    ///
    /// - Returns: Whether the ledger was replaced, so that nothing is stored any more.
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

    /// Marks every alias as doubted. Takes effect before this returns; durable unless the ledger fails.
    ///
    /// - Parameter missesPurges: Whether purges of objects may have been missed, too. Then the same transaction drops the puts
    ///   that the outbox holds, and uploads count no longer if the doubt is certain.
    func revalidateAll(_ doubt: MissedPurges, missesPurges: Bool) {
        changes.withLock { changes in
            let outbox = missesPurges ? changes.outbox : nil
            let includesUploads = missesPurges && doubt == .certain
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

    func forgetIfMissing(_ id: ObjectID) {
        guard let row = query({ try $0.objectRow(id) }) ?? nil else { return }
        do throws(SystemError) {
            if try directory.objects.length(row.record.name) == nil { _ = changes.withLock { $0.forget(row) } }
        } catch {
            // An error is no proof that the file is missing.
        }
    }
}

/// State of a ``CacheIndex`` readable without its lock, which may be held while a disk syncs. Any thread.
final class IndexStatus: Sendable {
    private let knownTotals: Mutex<CacheTotals>
    private let knownRefusal: Mutex<UnstoredReason?>
    private let commits = Atomic<Int64>(0)
    private let lost = Atomic(false)

    init(_ totals: CacheTotals, refusal: UnstoredReason?) {
        knownTotals = Mutex(totals)
        knownRefusal = Mutex(refusal)
    }

    var totals: CacheTotals {
        get { knownTotals.withLock { $0 } }
        set { knownTotals.withLock { $0 = newValue } }
    }

    /// Why nothing can be stored; nil if storing is possible.
    var refusal: UnstoredReason? { isLost ? .directoryLost : knownRefusal.withLock { $0 } }

    func setRefusal(_ reason: UnstoredReason?) {
        knownRefusal.withLock { $0 = reason }
    }

    /// Whether the path no longer leads to the directory. That lasts until a restart.
    var isLost: Bool { lost.load(ordering: .relaxed) }

    func setLost() {
        lost.store(true, ordering: .relaxed)
    }

    /// The number of objects and aliases recorded so far; see ``CacheVersion``.
    var commitCount: Int64 { commits.load(ordering: .acquiring) }

    func countCommit() {
        commits.add(1, ordering: .releasing)
    }
}
