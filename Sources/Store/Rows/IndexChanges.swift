internal import Synchronization
internal import SystemIO

/// The state that a ``CacheContext`` guards by its lock: what was recorded, what could not be recorded yet, and whether the
/// ledger can be changed. Every call may block.
struct IndexChanges: ~Copyable, Sendable {
    /// Purges or a doubt, and a change to other owners' tables in the same transaction.
    struct Unrecorded {
        var purges: [(purge: Purge, sequence: Int64)] = []
        /// The doubt, and the sequence up to which it applies.
        var doubt: (MissedPurges, Int64)?
        var change: Ledger.Change = { _ in }
    }

    /// A state of the ledger in which nothing is stored until a repair succeeds.
    private struct Failure {
        var isDamage: Bool
        let cause: String
        /// Whether an event reported that nothing is stored.
        var isReported: Bool
        var attempts = 0
        var nextAttempt: UInt64 = 0
    }

    let directory: CacheDirectory
    let ledger: Ledger
    let status: IndexStatus
    let purges: PurgeIndex
    private let clock: TimeSource
    private let report: @Sendable (CacheEvent) -> Void
    private let onFailure: @Sendable () -> Void
    private(set) var sequence: Int64
    private var hand: EvictionHand
    /// Where the search for unused aliases stopped.
    private var aliasHand: Int64 = 0
    /// Where the sweep of the oldest purge stopped.
    private var sweepPosition: CacheTables.SweepPosition?
    /// Purges whose rows are being counted and must not be swept until then.
    var counted: Set<Int64> = []
    /// Receives a deletion in the transaction of each purge of an object; nil without a shared store.
    var outbox: Outbox?
    /// Changes that took effect and are not recorded yet.
    private var unrecorded: [Unrecorded] = []
    /// Objects whose files are removed and whose rows could not be removed yet.
    private var removedRows: Set<Int64> = []
    private var failure: Failure?
    /// The number of times that a file may have been left without a row. `scannedOrphans` is this number at the start of the
    /// latest finished scan.
    private var possibleOrphans: Int
    private var scannedOrphans = 0
    /// Whether the latest scan compared every file and removed all without a row; true before the first scan.
    private var wasScanComplete = true
    /// Whether files and rows are to be compared although no file is known to lack a row: a backup that was copied over the
    /// directory leaves the files that are newer than its rows.
    var isScanDue = false
    private(set) var isClosed = false

    /// - Parameter failure: The ledger's error at startup, which is already reported.
    init(
        _ recorded: CacheState, in directory: CacheDirectory, _ ledger: Ledger, _ status: IndexStatus, _ purges: PurgeIndex,
        failure: LedgerError?, clock: TimeSource, report: @escaping @Sendable (CacheEvent) -> Void,
        onFailure: @escaping @Sendable () -> Void
    ) {
        self.directory = directory
        self.ledger = ledger
        self.status = status
        self.purges = purges
        self.clock = clock
        self.report = report
        self.onFailure = onFailure
        sequence = recorded.sequence
        hand = EvictionHand(at: recorded.hand)
        self.failure = failure.map { Failure(isDamage: $0.kind == .damage, cause: $0.description, isReported: true) }
        possibleOrphans = recorded.isClean ? 0 : 1
    }

    /// Records that every file has a row, closes the ledger, and unlocks the directory. A second call does nothing.
    mutating func close() {
        guard !isClosed else { return }
        if !unrecorded.isEmpty { _ = try? record() }
        isClosed = true
        status.setRefusal(.unavailable)
        let (hand, isClean) = (hand.position, !needsScan && wasScanComplete && removedRows.isEmpty)
        // On a full disk this may fail. Then the next start compares files and rows.
        _ = try? ledger.write(.full) { [purges] in try CacheTables($0, purges).setClean(isClean, hand: hand) }
        ledger.close()
        directory.unlock()
    }

    // MARK: Transactions

    /// Reads rows. Notes damage.
    mutating func read<Result>(_ body: (CacheTables) throws -> Result) throws(LedgerError) -> Result {
        do throws(LedgerError) {
            return try ledger.read { [purges] in try body(CacheTables($0, purges)) }
        } catch {
            if error.kind == .damage { note(error) }
            throw error
        }
    }

    /// Changes rows in one transaction. Notes every error.
    mutating func change<Result>(
        _ durability: Ledger.Durability = .normal, _ body: (CacheTables) throws -> Result
    ) throws(LedgerError) -> Result {
        let (sequence, purges) = (sequence, purges)
        do throws(LedgerError) {
            let (result, totals) = try ledger.write(durability) { database in
                let tables = CacheTables(database, purges)
                let result = try body(tables)
                try tables.setSequence(sequence)
                return (result, try tables.state().totals)
            }
            status.totals = totals
            return result
        } catch {
            note(error)
            throw error
        }
    }

    /// Reserves `count` sequence numbers without gaps for new rows, and returns the first.
    mutating func takeSequences(_ count: Int64) -> Int64 {
        defer { sequence += count }
        return sequence + 1
    }

    // MARK: Failures

    /// Stops storing after an error of the ledger, until ``repair()`` succeeds.
    mutating func note(_ error: LedgerError) {
        guard error.kind != .closed, !isClosed else { return }
        let isDamage = error.kind == .damage
        if failure == nil || isDamage && failure?.isDamage == false {
            // A damaged ledger is replaced at once, which has its own event.
            let wasReported = failure?.isReported ?? false
            failure = Failure(isDamage: isDamage, cause: error.description, isReported: wasReported || !isDamage)
            if !isDamage { report(.storingStopped(cause: error.description)) }
            // Only the first error wakes housekeeping, whose own work causes another one in each round.
            onFailure()
        }
        status.setRefusal(UnstoredReason(error))
    }

    /// Tries to end a failure: replaces a damaged ledger, and records what could not be recorded.
    ///
    /// - Returns: Whether the ledger was replaced, so that nothing is stored any more.
    mutating func repair() -> Bool {
        guard var attempt = failure, !isClosed else { return false }
        let now = clock.monotonicNanoseconds()
        guard now >= attempt.nextAttempt else { return false }
        // The delay doubles from one second up to one minute.
        attempt.nextAttempt = now + min(1 << min(UInt64(attempt.attempts), 6), 60) * 1_000_000_000
        attempt.attempts += 1
        failure = attempt
        if attempt.isDamage, !replaceLedger(because: attempt.cause) { return false }
        if (try? record()) != nil, let ended = failure {
            failure = nil
            status.setRefusal(nil)
            if ended.isReported { report(.storingResumed) }
        }
        return attempt.isDamage
    }

    private mutating func replaceLedger(because cause: String) -> Bool {
        do throws(LedgerError) {
            try ledger.replaceDamaged()
        } catch {
            if failure?.isReported == false { report(.storingStopped(cause: "\(cause); \(error.description)")) }
            failure?.isReported = true
            return false
        }
        report(.ledgerReplaced(cause: cause))
        failure?.isDamage = false
        possibleOrphans += 1
        // Unrecorded purges are kept: other nodes and the shared store may not know them.
        purges.forgetRows()
        sweepPosition = nil
        removedRows = []
        hand = EvictionHand(at: 0)
        return true
    }

    // MARK: Recording

    /// Records durably what could not be recorded, and that the cache is in use.
    mutating func record(_ new: Unrecorded? = nil) throws(LedgerError) {
        let (all, rows, hand, outbox) = (unrecorded + (new.map { [$0] } ?? []), removedRows, hand.position, outbox)
        try change(.full) { tables in
            try tables.setClean(false, hand: hand)
            try tables.delete(rows)
            let table = PurgeTable(tables.database)
            for event in all {
                for (purge, sequence) in event.purges {
                    try table.insert(purge, sequence)
                    if let id = purge.scope.objectID {
                        try outbox?.addDeletion(of: id, until: purge.madeAt, in: tables.database)
                    }
                }
                if let (doubt, sequence) = event.doubt { try tables.setDoubt(doubt, through: sequence) }
                try event.change(tables.database)
            }
        }
        unrecorded = []
        status.unrecordedPurges.withLock { $0 = [] }
        removedRows = []
    }

    mutating func recordOrRemember(_ event: Unrecorded) {
        guard !isClosed, (try? record(event)) == nil else { return }
        remember(event)
    }

    /// Changes other owners' tables in a transaction, unless `isWanted` is false. No purge comes between the check and the
    /// change. Returns whether the change was committed.
    mutating func record(_ change: Ledger.Change, if isWanted: () -> Bool) -> Bool {
        guard !isClosed, isWanted() else { return false }
        do throws(LedgerError) {
            try ledger.write(.normal, change)
            return true
        } catch {
            note(error)
            return false
        }
    }

    /// Remembers what could not be recorded. Beyond a limit, one purge of everything replaces the purges, and the oldest
    /// changes of others are dropped: their callers know that they are not durable.
    mutating func remember(_ new: Unrecorded) {
        if unrecorded.count >= Self.mostUnrecorded {
            let purges = status.unrecordedPurges.withLock { purges in
                defer { purges = [] }
                return purges
            }
            // The other nodes must apply what the stream does not contain.
            let isUnsent = purges.contains { $0.entry == nil }
            unrecorded = unrecorded.suffix(Self.mostUnrecorded / 2).map { Unrecorded(change: $0.change) }
            let all = purges.max { $0.madeAt < $1.madeAt }.map { latest in
                Purge(
                    .all, madeAt: latest.madeAt, isLocal: true, token: "\(latest.token)-all",
                    entry: isUnsent ? nil : latest.entry)
            }
            if let all {
                let sequence = takeSequences(1)
                self.purges.insert(all, sequence)
                unrecorded.append(Unrecorded(purges: [(all, sequence)]))
                status.unrecordedPurges.withLock { $0 = [all] }
            }
            unrecorded.append(Unrecorded(doubt: (.certain, sequence)))
        }
        unrecorded.append(new)
        status.unrecordedPurges.withLock { $0 += new.purges.map(\.purge) }
    }

    private static var mostUnrecorded: Int { 16_384 }

    // MARK: Files and rows

    /// Removes the rows of objects whose files are removed; later if the ledger fails.
    @discardableResult
    mutating func deleteRows(_ objects: [ObjectRow]) -> Bool {
        guard !objects.isEmpty else { return true }
        let sequences = objects.map(\.sequence)
        if (try? change { try $0.delete(sequences) }) != nil { return true }
        removedRows.formUnion(sequences)
        return false
    }

    /// Removes a file. If that fails, a scan removes it, unless a row leads to it again.
    mutating func removeFile(_ name: RenditionName) {
        if (try? directory.objects.remove(name)) == nil { possibleOrphans += 1 }
    }

    /// Identifies a scan for files without rows that begins now; nil if no scan is needed, or none is possible yet.
    var scanNumber: Int? { (needsScan || isScanDue) && canChange ? possibleOrphans : nil }

    private var needsScan: Bool { possibleOrphans > scannedOrphans }

    /// Ends a scan. After an incomplete one, such as one that could not remove a file, the next start scans again.
    mutating func finishScan(_ number: Int, isComplete: Bool) {
        isScanDue = false
        scannedOrphans = max(scannedOrphans, number)
        wasScanComplete = isComplete
    }

    var canChange: Bool { !isClosed && failure == nil }
}

// MARK: - Purges

extension IndexChanges {
    /// Applies purges durably, with one insert per purge and one sync, whatever they cover. ``sweep()`` removes files and rows,
    /// but only after the caller has called ``CacheContext/count(_:_:)`` for each returned purge.
    ///
    /// - Parameters:
    ///   - new: Purges that were inserted before are skipped.
    ///   - change: A change to other owners' tables in the same transaction.
    /// - Returns: The purges with their sequences, and the error if they are not durable. They apply nevertheless, except after
    ///   ``close()``.
    mutating func purge(
        _ new: [Purge], with change: @escaping Ledger.Change = { _ in }
    ) -> (purges: [(purge: Purge, sequence: Int64)], failure: LedgerError?) {
        var accepted: [(purge: Purge, sequence: Int64)] = []
        for purge in new where !purges.isInserted(purge.token) && !accepted.contains(where: { $0.purge.token == purge.token }) {
            accepted.append((purge, takeSequences(1)))
        }
        counted.formUnion(accepted.map(\.sequence))
        // Another server may have locked the directory since.
        guard !isClosed else { return (accepted, LedgerError(.closed, "the cache is closed")) }
        for (purge, sequence) in accepted { purges.insert(purge, sequence) }
        let event = Unrecorded(purges: accepted, change: change)
        do throws(LedgerError) {
            try record(event)
            return (accepted, nil)
        } catch {
            if error.kind == .fullDisk {
                directory.giveUpReserve()
                if (try? record(event)) != nil { return (accepted, nil) }
                removeCoveredFiles()
                if (try? record(event)) != nil { return (accepted, nil) }
            }
            remember(event)
            return (accepted, error)
        }
    }

    /// Removes some files that purges cover, to free space for the row of a purge. A sweep removes their rows later.
    private mutating func removeCoveredFiles() {
        let files = directory.objects
        _ = try? read { tables in
            for event in tables.purges.unsweptRows() {
                var position = CacheTables.SweepPosition(sequence: event.sequence)
                for object in try tables.covered(by: event, &position, limit: Self.rowsPerSweep).objects {
                    _ = try? files.remove(object.record.name)
                }
            }
        }
    }

    /// Removes the files and rows of a bounded number of purged objects and aliases. Returns whether there may be more.
    mutating func sweep() -> Bool {
        guard canChange else { return false }
        let (counted, limit, start) = (counted, Self.rowsPerSweep, sweepPosition)
        let step: (aliases: [AliasReference], objects: [ObjectRow], position: CacheTables.SweepPosition)?
        do throws(LedgerError) {
            step = try read { tables in
                guard let purge = try PurgeTable(tables.database).nextToSweep(except: counted) else { return nil }
                var position = CacheTables.SweepPosition(sequence: purge.sequence)
                if let start, start.sequence == purge.sequence { position = start }
                let (aliases, objects) = try tables.covered(by: purge, &position, limit: limit)
                return (aliases, objects, position)
            }
        } catch {
            return false
        }
        guard let (aliases, objects, position) = step else { return sweepRemoved() }
        // Removes the files first: a row without its file is covered in any case.
        for object in objects where (try? directory.objects.remove(object.record.name)) == nil { return false }
        guard delete(objects, aliases, endingSweepOf: position.hasEnded ? position.sequence : nil) else { return false }
        sweepPosition = position.hasEnded ? nil : position
        if position.hasEnded { purges.markSwept(position.sequence) }
        return true
    }

    /// Removes the rows of objects whose files are removed, and of aliases, in one transaction. Returns whether it was
    /// committed.
    private mutating func delete(
        _ objects: [ObjectRow], _ aliases: [AliasReference], endingSweepOf purge: Int64? = nil
    ) -> Bool {
        let isCommitted: Void? = try? change { tables in
            try tables.delete(objects.map(\.sequence))
            try tables.delete(aliases: aliases.map(\.sequence))
            if let purge { try PurgeTable(tables.database).markSwept(purge) }
        }
        return isCommitted != nil
    }

    /// Removes a bounded number of aliases of removed objects.
    private mutating func sweepRemoved() -> Bool {
        guard (try? read({ try $0.hasRemoved() })) == true else { return false }
        return (try? change(.normal, { try $0.deleteAliasesOfRemoved(limit: Self.rowsPerSweep) })) ?? false
    }

    /// Removes the rows of completed purges, if there are many.
    mutating func removeDonePurges() {
        guard canChange, (try? read({ try PurgeTable($0.database).hasManyDone() })) == true else { return }
        try? change { try PurgeTable($0.database).removeDone() }
    }

    private static var rowsPerSweep: Int { 128 }
}

// MARK: - Eviction

extension IndexChanges {
    /// Removes one object. Returns false if it was gone, or replaced since it was read.
    mutating func forget(_ object: ObjectRow) -> Bool {
        guard !isClosed, let current = try? read({ try $0.knownObjectRow(object.record.id) }),
            current.sequence == object.sequence
        else { return false }
        removeFile(current.record.name)
        deleteRows([current])
        return true
    }

    /// Evicts objects until `wanted` bytes of the disk are freed, a bounded number is removed, or a file cannot be removed.
    mutating func evict(atLeast wanted: Int64, visited: VisitedObjects) -> EvictedObjects {
        guard !isClosed else { return EvictedObjects(mayContinue: false) }
        do throws(LedgerError) {
            let (ledger, purges) = (ledger, purges)
            let selected = try hand.select(atLeast: wanted, visited: visited) { sequence, limit throws(LedgerError) in
                try ledger.read { try CacheTables($0, purges).objects(after: sequence, limit: limit) }
            }
            if let selected { return evict(selected) }
        } catch {
            note(error)
        }
        return EvictedObjects(mayContinue: false)
    }

    /// Removes files, up to the first that cannot be removed: its object keeps its row, because its bytes stay on the disk.
    /// Then removes the rows.
    private mutating func evict(_ objects: [ObjectRow]) -> EvictedObjects {
        var evicted = EvictedObjects()
        for object in objects {
            do throws(SystemError) {
                if try directory.objects.remove(object.record.name) {
                    evicted.objects.append(object)
                } else {
                    evicted.withoutFile.append(object)
                }
            } catch {
                evicted.mayContinue = false
                break
            }
        }
        if !deleteRows(evicted.objects + evicted.withoutFile) { evicted.mayContinue = false }
        return evicted
    }

    /// Evicts some of the aliases that were not renewed recently and are not in memory. Returns the objects that only they led
    /// to, which are evicted too; nil if there is nothing to evict.
    mutating func evictAliases(unless isInUse: (AliasKey) -> Bool) -> [ObjectRow]? {
        let position = aliasHand
        guard !isClosed,
            let (last, unused, objects) = try? read({ tables in
                let (last, unused) = try tables.oldestAliases(after: position, limit: 64, unless: isInUse)
                return (last, unused, try tables.unreferenced(by: unused))
            })
        else { return nil }
        let removed = objects.filter { (try? directory.objects.remove($0.record.name)) != nil }
        guard delete(removed, unused) else { return nil }
        aliasHand = last ?? 0
        return last == nil ? nil : removed
    }

    /// Removes a file unless there is a row for it. Returns whether it was removed, and nil if that failed.
    mutating func removeOrphan(_ name: RenditionName) -> Bool? {
        guard !isClosed, let isKnown = try? read({ try $0.knownObjectRow(name.id)?.record.name == name }) else { return nil }
        return isKnown ? false : try? directory.objects.remove(name)
    }
}

/// What ``IndexChanges`` shows without its lock, which may be held while a disk syncs. Any thread.
final class IndexStatus: Sendable {
    private let knownTotals: Mutex<CacheTotals>
    private let knownRefusal: Mutex<UnstoredReason?>
    /// The purges that could not be recorded yet.
    let unrecordedPurges = Mutex<[Purge]>([])
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
