internal import Ledger
internal import Synchronization
internal import SystemIO

/// One opened directory with its files and its ledger, and the lock that puts all changes of them in one order.
///
/// **Order of a publish**: the name of the file, the row, the table in memory. **Order of a purge**: the rows, the table in
/// memory, the files. **Order of an eviction**: the files, the rows. A crash between two steps leaves a file without a row, which
/// is removed later, or a row without a file, which is a miss.
///
/// Look-ups take no lock. Every call may block: not for I/O threads.
final class Store: Sendable {
    let directory: CacheDirectory
    let ledger: Ledger
    private let report: @Sendable (CacheEvent) -> Void
    private let changes: Mutex<StoreChanges>
    private let status: StoreStatus
    private let doubts: AliasDoubts

    /// Opens and locks the directory. Begins with an empty cache if the ledger is missing or damaged.
    ///
    /// - Parameters:
    ///   - report: Receives events that an operator should know.
    ///   - onFailure: Called when a repair is due; it must not block.
    init(
        path: String, owners: [Ledger.Tables] = [], clock: TimeSource = .system,
        report: @escaping @Sendable (CacheEvent) -> Void = { _ in }, onFailure: @escaping @Sendable () -> Void = {}
    ) throws(CacheError) {
        let directory = try CacheDirectory(path: path)
        if directory.removeFormerFormat() { report(.formerFormatRemoved(path: path)) }
        let state: CacheState
        var failure: LedgerError?
        var unfinished: [PurgeScope] = []
        do throws(LedgerError) {
            ledger = try Ledger(directory: path, owners: [CacheTables.owned] + owners)
            if let cause = ledger.replacedBecause { report(.ledgerReplaced(cause: cause)) }
            do throws(LedgerError) {
                state = try Self.begin(ledger)
            } catch {
                if error.kind == .damage {
                    try ledger.replaceDamaged()
                    report(.ledgerReplaced(cause: error.description))
                    state = try Self.begin(ledger)
                } else {
                    // A full or read-only disk: stored renditions can still be served.
                    failure = error
                    report(.storingStopped(cause: error.description))
                    (state, unfinished) = try ledger.read { database in
                        let tables = CacheTables(database)
                        return (try tables.state(), try tables.unfinishedPurges())
                    }
                }
            }
        } catch {
            throw .ledgerUnusable(path: directory.path(of: Ledger.fileName), cause: error.description)
        }
        // The name of a new ledger.
        try? directory.syncNames()
        self.directory = directory
        self.report = report
        // Rows that an unfinished purge may cover.
        let status = StoreStatus(
            state.totals, refusal: failure.map { UnstoredReason($0) },
            hiddenThrough: unfinished.isEmpty ? 0 : state.sequence)
        self.status = status
        doubts = AliasDoubts(certain: state.revalidated, possible: state.unconfirmed)
        changes = Mutex(
            StoreChanges(
                state, in: directory, ledger, status, failure: failure, unfinished: unfinished, clock: clock, report: report,
                onFailure: onFailure))
    }

    /// Records that the cache is in use, and ends purges that a crash has interrupted.
    private static func begin(_ ledger: Ledger) throws(LedgerError) -> CacheState {
        var state = try ledger.read { try CacheTables($0).state() }
        // Durably: after a power loss it must not look as if the cache had been closed.
        try ledger.write(.full) { [state] in try CacheTables($0).setClean(false, hand: state.hand) }
        while try ledger.write(.normal, { try CacheTables($0).continuePurge() }) != nil {}
        state.totals = try ledger.read { try CacheTables($0).state().totals }
        return state
    }

    /// Records that every file has a row, closes the ledger, and unlocks the directory. A second call does nothing.
    func close() {
        changes.withLock { $0.close() }
    }

    // MARK: State

    /// What is stored, as of the last change. Never waits for a disk.
    var totals: CacheTotals { status.totals }

    /// Changes after each object or alias that is recorded. Never waits for a disk.
    var commitCount: Int64 { status.commitCount }

    /// Why nothing can be stored; nil if something can. Never waits for a disk.
    var refusal: UnstoredReason? { status.refusal }

    /// Stops storing if the path no longer leads to the directory. That lasts until a restart: what is in the directory now may
    /// be another server's.
    func checkPlace() {
        guard !status.isLost, !directory.isInPlace, !changes.withLock({ $0.isClosed }) else { return }
        status.setLost()
        report(.directoryLost(path: directory.path))
    }

    // MARK: Queries

    /// The alias with that key and its object; nil if there is none, it is hidden, or the ledger fails.
    func aliasRow(_ key: AliasKey) -> AliasRow? {
        let hidden = status.hiddenThrough
        guard let row = query({ try $0.aliasRow(key) }) ?? nil, row.sequence > hidden else { return nil }
        return row
    }

    /// Up to `limit` aliases of a source, the newest first; nil if the ledger fails.
    func aliases(of sourceURL: String, limit: Int) -> [AliasRow]? {
        let hidden = status.hiddenThrough
        return query { try $0.aliases(of: sourceURL, limit: limit) }?.filter { $0.sequence > hidden }
    }

    /// The object with that id; nil if there is none, it is hidden, or the ledger fails.
    func objectRow(_ id: ObjectID) -> ObjectRow? {
        // Before the row is read: a purge that was hidden and is now recorded has removed the row.
        let hidden = status.hiddenThrough
        guard let row = query({ try $0.objectRow(id) }) ?? nil, row.sequence > hidden else { return nil }
        return row
    }

    /// Up to `limit` objects after `sequence`, in the order of the eviction queue; nil if the ledger fails.
    func objects(after sequence: Int64, limit: Int) -> [ObjectRow]? {
        query { try $0.objects(after: sequence, limit: limit) }
    }

    /// The file extensions of all objects whose ids begin with the byte `first`; nil if the ledger fails.
    func extensions(ofObjectsIn first: UInt8) -> [ObjectID: String]? {
        query { try $0.extensions(ofObjectsIn: first) }
    }

    private func query<Result>(_ body: (CacheTables) throws -> Result) -> Result? {
        let replacements = ledger.replacements
        do throws(LedgerError) {
            return try ledger.read { try body(CacheTables($0)) }
        } catch {
            if error.kind == .damage { note(error, after: replacements) }
            return nil
        }
    }

    /// Notes an error of work without the lock, unless the database was replaced meanwhile.
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
        changes.withLock { $0.repair() }
    }

    // MARK: Publishing

    /// Adds a rendition to the cache: names its file, and records it. If the object is stored already, only its reference is
    /// recorded.
    ///
    /// - Parameter isWanted: Called under the lock that purges take, too. A purge after it finds the rendition.
    func commit(
        _ job: PublishJob, _ record: ObjectRecord, if isWanted: () -> Bool
    ) throws(UnstoredReason) -> CommittedObject {
        try changes.withLock { changes throws(UnstoredReason) in try changes.commit(job, record, if: isWanted) }
    }

    /// Records an alias to a stored object, or, for nil, that the object was uploaded.
    ///
    /// - Parameter isWanted: See ``commit(_:_:if:)``.
    /// - Returns: The sequence of the alias, 0 without one; nil if the object is no longer stored.
    func commitReference(
        _ alias: AliasRecord?, to object: StoredObject, if isWanted: () -> Bool
    ) throws(UnstoredReason) -> Int64? {
        try changes.withLock { changes throws(UnstoredReason) in
            try changes.commitReference(alias, to: object, if: isWanted)
        }
    }

    // MARK: Purging

    /// Removes what a purge covers, durably. Files, and the rows of objects, follow with ``sweep()``.
    ///
    /// - Parameters:
    ///   - time: See ``Cache/purge(_:madeAt:with:)``.
    ///   - change: Belongs to the same transaction.
    ///   - inForce: Called under the lock, after the rows were removed or hidden. A large purge removes rows in parts, between
    ///     which others change the tables. It is called before the second part, so that no older work is stored any more, and
    ///     again after the last one, so that no look-up has seen older rows.
    /// - Returns: What was removed, and the error if the purge is not durable, such as after ``close()``. The purge
    ///   took effect even so.
    func purge(
        _ scope: PurgeScope, madeAt time: Int64? = nil, with change: @escaping Ledger.Change, inForce: () -> Void
    ) -> (purged: CacheTables.Purged, failure: LedgerError?) {
        var all = CacheTables.Purged()
        var event = StoreChanges.Unrecorded(entry: .purge(scope), time: time, change: change)
        var isContinuation = false
        while true {
            let (part, failure) = changes.withLock { changes in
                defer { inForce() }
                return changes.purge(scope, event, isContinuation: isContinuation)
            }
            if isContinuation { all.add(part) } else { all = part }
            guard failure == nil, all.isPartial else { return (all, failure) }
            // The change of other owners belongs to the first transaction.
            event = StoreChanges.Unrecorded(entry: .purge(scope), time: time, change: { _ in })
            isContinuation = true
        }
    }

    /// Removes the files and rows of a bounded number of purged objects.
    ///
    /// - Returns: Whether there may be more.
    func sweep() -> Bool {
        changes.withLock { $0.sweep() }
    }

    /// Changes other owners' tables durably, after all purges so far.
    func record(_ change: @escaping Ledger.Change) {
        changes.withLock { $0.recordOrRemember(StoreChanges.Unrecorded(entry: nil, change: change)) }
    }

    /// Changes other owners' tables in a transaction, unless `isWanted` is false. No purge comes between the two.
    ///
    /// - Returns: Whether the change was committed.
    func record(_ change: Ledger.Change, if isWanted: () -> Bool) -> Bool {
        changes.withLock { changes in
            guard !changes.isClosed, isWanted() else { return false }
            do throws(LedgerError) {
                try ledger.write(.normal, change)
                return true
            } catch {
                changes.note(error)
                return false
            }
        }
    }

    // MARK: Doubts

    /// Why an alias has to be confirmed by its origin; nil if it need not.
    @inline(__always)
    func doubt(ofAlias sequence: Int64) -> MissedPurges? { doubts.doubt(ofAlias: sequence) }

    /// Whether ``holdAliases()`` concerns an object.
    @inline(__always)
    func isHeld(_ object: Int64) -> Bool { doubts.isHeld(object) }

    /// Has every alias doubted. In force when this returns, durable unless the ledger fails.
    ///
    /// - Parameter change: Belongs to the same transaction.
    func revalidateAll(_ doubt: MissedPurges, with change: @escaping Ledger.Change) {
        changes.withLock { changes in
            doubts.doubt(doubt, through: changes.sequence)
            changes.recordOrRemember(StoreChanges.Unrecorded(entry: .revalidation(doubt), change: change))
        }
    }

    /// See ``Cache/holdAliases()``.
    func holdAliases() {
        changes.withLock { doubts.hold(through: $0.sequence) }
    }

    /// See ``Cache/doubtAliases()``.
    func doubtAliases() {
        changes.withLock { doubts.doubtAlone(through: $0.sequence) }
    }

    /// See ``Cache/confirmAliases()``.
    func confirmAliases() {
        doubts.confirm()
    }

    // MARK: Removing

    /// Removes one object, unless it was replaced since it was read.
    ///
    /// - Returns: False if it was gone or replaced.
    func forget(_ object: ObjectRow) -> Bool {
        changes.withLock { $0.forget(object) }
    }

    /// Evicts objects until they take `wanted` bytes or a bounded number of objects is removed, or a file cannot be removed.
    func evict(atLeast wanted: Int64, visited: VisitedObjects) -> EvictedObjects {
        changes.withLock { $0.evict(atLeast: wanted, visited: visited) }
    }

    /// Evicts some of the aliases that were not renewed for long and are not in memory, and the objects that only they led to.
    ///
    /// - Returns: The removed objects, whose files follow with ``sweep()``; nil if there is nothing to evict.
    func evictAliases(unless isInUse: (AliasKey) -> Bool) -> [ObjectRow]? {
        changes.withLock { $0.evictAliases(unless: isInUse) }
    }

    // MARK: Files without rows

    /// Whether there may be files without rows; see ``OrphanScan``.
    var needsScan: Bool { scanNumber != nil }

    /// Identifies a scan that begins now; nil if there is nothing to do, or not yet.
    var scanNumber: Int? { changes.withLock { $0.scanNumber } }

    /// Ends a scan. After an incomplete one, such as one that could not remove a file, the next start scans again.
    func finishScan(_ number: Int, isComplete: Bool) {
        changes.withLock { $0.finishScan(number, isComplete: isComplete) }
    }

    /// Removes a file unless there is a row for it. Returns whether it was removed, and nil if that failed.
    func removeOrphan(_ name: FileName) -> Bool? {
        changes.withLock { $0.removeOrphan(name) }
    }

    /// Removes the row of an object if its file is missing.
    func forgetIfMissing(_ id: ObjectID) {
        guard let row = objectRow(id) else { return }
        do throws(SystemError) {
            if try directory.objects.length(id, row.record.fileExtension) == nil { _ = forget(row) }
        } catch {
            // An error is no proof that the file is missing.
        }
    }
}
