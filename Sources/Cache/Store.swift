internal import Glibc
internal import Ledger
internal import Synchronization
internal import SystemIO

/// One opened directory with its files and its ledger, and the lock that puts all changes of them in one order.
///
/// **Order of a publish**: the name of the file, the row, the table in memory. **Order of a purge**: the rows, the table in memory,
/// the files. **Order of an eviction**: the files, the rows. A crash between two steps leaves a file without a row, which is removed
/// later, or a row without a file, which is a miss.
///
/// Look-ups take no lock. Every call may block: not for I/O threads.
final class Store: Sendable {
    private struct State: ~Copyable, Sendable {
        /// The latest sequence.
        var sequence: Int64
        var hand: EvictionHand
        /// Where the search for unused aliases stopped.
        var aliasHand: Int64 = 0
        /// Changes that are in force and not recorded.
        var unrecorded: [Unrecorded] = []
        /// Objects whose files are removed and whose rows could not be removed yet.
        var removedRows: Set<Int64> = []
        var failure: Failure?
        /// The number of times that a file without a row may have been left, and of those before the start of the latest scan that
        /// has ended.
        var doubts: Int
        var scannedDoubts = 0
        var isClosed = false

        var needsScan: Bool { doubts > scannedDoubts }
    }

    /// A purge or another event, and the change of other owners' tables that belongs to its transaction.
    struct Unrecorded {
        /// Nil if the cache has nothing to record for it any more.
        var entry: PurgeLog.Entry?
        /// See ``Cache/purge(_:madeAt:with:)``.
        var time: Int64?
        let change: Ledger.Change
    }

    /// The sequences up to which aliases are doubted.
    private struct Doubts {
        /// Recorded.
        var certain: Int64
        var possible: Int64
        /// Not recorded; see ``holdAliases()`` and ``doubtAliases()``.
        var held: Int64 = 0
        var alone: Int64 = 0

        func doubt(of sequence: Int64) -> MissedPurges? {
            if sequence <= max(certain, held) { return .certain }
            return sequence <= max(possible, alone) ? .possible : nil
        }

        var latest: Int64 { max(certain, possible, held, alone) }
    }

    /// An error of the ledger, after which nothing is stored until a repair succeeds.
    private struct Failure {
        let error: LedgerError
        var attempts = 0
        var nextAttempt: UInt64 = 0
    }

    let directory: CacheDirectory
    let ledger: Ledger
    private let clock: CacheClock
    private let report: @Sendable (CacheEvent) -> Void
    private let onFailure: @Sendable () -> Void
    private let state: Mutex<State>
    private let knownTotals: Mutex<CacheTotals>
    /// Why nothing can be stored, apart from the lock, which may be held while a disk syncs.
    private let knownRefusal: Mutex<UnstoredReason?>
    /// Rows up to this sequence are hidden: an unrecorded purge may cover them.
    private let hidden = Atomic<Int64>(0)
    private let doubts: Mutex<Doubts>
    /// Aliases up to this sequence are doubted.
    private let doubted: Atomic<Int64>
    /// Objects up to this sequence are held.
    private let held = Atomic<Int64>(0)
    private let lost = Atomic(false)
    /// The number of objects and aliases recorded so far; see ``CacheVersion``.
    private let commits = Atomic<Int64>(0)

    /// Opens and locks the directory. Begins with an empty cache if the ledger is missing or damaged.
    ///
    /// - Parameters:
    ///   - report: Receives events that an operator should know.
    ///   - onFailure: Called when a repair is due; it must not block.
    init(
        path: String, owners: [Ledger.Tables] = [], clock: CacheClock = .system,
        report: @escaping @Sendable (CacheEvent) -> Void = { _ in }, onFailure: @escaping @Sendable () -> Void = {}
    ) throws(CacheError) {
        let directory = try CacheDirectory(path: path)
        if directory.removeFormerFormat() { report(.formerFormatRemoved(path: path)) }
        var state: CacheState
        var failure: Failure?
        var unfinished: [PurgeScope] = []
        do throws(LedgerError) {
            ledger = try Ledger(directory: path, owners: [CacheTables.owned] + owners)
            if let cause = ledger.replacedBecause { report(.ledgerReplaced(cause: cause)) }
            state = try Self.readState(ledger, report)
            do throws(LedgerError) {
                // Durably: after a power loss it must not look as if the cache had been closed.
                try ledger.write(.full) { [state] in try CacheTables($0).setClean(false, hand: state.hand) }
                // A purge that a crash has interrupted.
                while try ledger.write(.normal, { try CacheTables($0).continuePurge() }) != nil {}
                state.totals = try ledger.read { try CacheTables($0).state().totals }
            } catch {
                // A full or read-only disk: stored renditions can still be served.
                failure = Failure(error: error)
                report(.storingStopped(cause: error.description))
                unfinished = try ledger.read { try CacheTables($0).unfinishedPurges() }
            }
        } catch {
            throw .ledgerUnusable(path: directory.path(of: Ledger.fileName), cause: error.description)
        }
        // The name of a new ledger.
        try? directory.syncNames()
        self.directory = directory
        self.clock = clock
        self.report = report
        self.onFailure = onFailure
        knownTotals = Mutex(state.totals)
        knownRefusal = Mutex(failure.map { UnstoredReason($0.error) })
        let doubts = Doubts(certain: state.revalidated, possible: state.unconfirmed)
        self.doubts = Mutex(doubts)
        doubted = Atomic(doubts.latest)
        self.state = Mutex(
            State(
                sequence: state.sequence, hand: EvictionHand(at: state.hand),
                unrecorded: unfinished.map { Unrecorded(entry: .purge($0), change: { _ in }) }, failure: failure,
                doubts: state.isClean ? 0 : 1))
        if !unfinished.isEmpty { hidden.store(state.sequence, ordering: .releasing) }
    }

    private static func readState(
        _ ledger: Ledger, _ report: (CacheEvent) -> Void
    ) throws(LedgerError) -> CacheState {
        do throws(LedgerError) {
            return try ledger.read { try CacheTables($0).state() }
        } catch {
            guard error.kind == .damage else { throw error }
            try ledger.replaceDamaged()
            report(.ledgerReplaced(cause: error.description))
            return try ledger.read { try CacheTables($0).state() }
        }
    }

    /// Records that every file has a row, closes the ledger, and unlocks the directory. A second call does nothing.
    func close() {
        state.withLock { state in
            guard !state.isClosed else { return }
            if !state.unrecorded.isEmpty { _ = try? record(&state) }
            state.isClosed = true
            knownRefusal.withLock { $0 = .unavailable }
            let (hand, isClean) = (state.hand.position, !state.needsScan && state.removedRows.isEmpty)
            // On a full disk this may fail. Then the next start compares files and rows.
            _ = try? ledger.write(.full) { try CacheTables($0).setClean(isClean, hand: hand) }
            ledger.close()
            directory.unlock()
        }
    }

    // MARK: State

    /// What is stored, as of the last change. Never waits for a disk.
    var totals: CacheTotals { knownTotals.withLock { $0 } }

    /// Why an alias has to be confirmed by its origin; nil if it need not.
    @inline(__always)
    func doubt(ofAlias sequence: Int64) -> MissedPurges? {
        guard sequence <= doubted.load(ordering: .relaxed) else { return nil }
        return doubts.withLock { $0.doubt(of: sequence) }
    }

    /// Whether ``holdAliases()`` concerns an object.
    @inline(__always)
    func isHeld(_ object: Int64) -> Bool {
        object <= held.load(ordering: .relaxed) && object > 0
    }

    private func setDoubts(_ change: (inout Doubts) -> Void) {
        doubts.withLock { doubts in
            change(&doubts)
            doubted.store(doubts.latest, ordering: .relaxed)
            held.store(doubts.held, ordering: .relaxed)
        }
    }

    /// Changes after each object or alias that is recorded. Never waits for a disk.
    var commitCount: Int64 { commits.load(ordering: .acquiring) }

    /// Why nothing can be stored; nil if something can. Never waits for a disk.
    var refusal: UnstoredReason? {
        lost.load(ordering: .relaxed) ? .directoryLost : knownRefusal.withLock { $0 }
    }

    /// Stops storing if the path no longer leads to the directory. That lasts until a restart: what is in the directory now may be
    /// another server's.
    func checkPlace() {
        guard !lost.load(ordering: .relaxed), !directory.isInPlace, !state.withLock({ $0.isClosed }) else { return }
        lost.store(true, ordering: .relaxed)
        report(.directoryLost(path: directory.path))
    }

    // MARK: Queries

    /// The alias with that key and its object; nil if there is none, it is hidden, or the ledger fails.
    func aliasRow(_ key: AliasKey) -> AliasRow? {
        let hidden = hidden.load(ordering: .acquiring)
        guard let row = query({ try $0.aliasRow(key) }) ?? nil, row.sequence > hidden else { return nil }
        return row
    }

    /// Up to `limit` aliases of a source, the newest first; nil if the ledger fails.
    func aliases(of sourceURL: String, limit: Int) -> [AliasRow]? {
        let hidden = hidden.load(ordering: .acquiring)
        return query { try $0.aliases(of: sourceURL, limit: limit) }?.filter { $0.sequence > hidden }
    }

    /// The object with that id; nil if there is none, it is hidden, or the ledger fails.
    func objectRow(_ id: ObjectID) -> ObjectRow? {
        // Before the row is read: a purge that was hidden and is now recorded has removed the row.
        let hidden = hidden.load(ordering: .acquiring)
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
        do throws(LedgerError) {
            return try ledger.read { try body(CacheTables($0)) }
        } catch {
            if error.kind == .damage { state.withLock { note(error, &$0) } }
            return nil
        }
    }

    // MARK: Changes

    /// Changes rows in one transaction.
    private func change<Result>(
        _ state: inout State, _ durability: Ledger.Durability = .normal, _ body: (CacheTables) throws -> Result
    ) throws(LedgerError) -> Result {
        let sequence = state.sequence
        do throws(LedgerError) {
            let (result, totals) = try ledger.write(durability) { database in
                let tables = CacheTables(database)
                let result = try body(tables)
                try tables.setSequence(sequence)
                return (result, try tables.state().totals)
            }
            knownTotals.withLock { $0 = totals }
            return result
        } catch {
            note(error, &state)
            throw error
        }
    }

    private func note(_ error: LedgerError, _ state: inout State) {
        guard error.kind != .closed, !state.isClosed else { return }
        if state.failure == nil { report(.storingStopped(cause: error.description)) }
        if state.failure == nil || error.kind == .damage { state.failure = Failure(error: error) }
        knownRefusal.withLock { $0 = UnstoredReason(error) }
        onFailure()
    }

    /// Tries to end a failure: replaces a damaged ledger, and records what could not be recorded.
    ///
    /// - Returns: Whether the ledger was replaced, so that nothing is stored any more.
    func repair() -> Bool {
        state.withLock { state in
            guard let failure = state.failure, !state.isClosed else { return false }
            let now = clock.monotonicNanoseconds()
            guard now >= failure.nextAttempt else { return false }
            state.failure?.attempts += 1
            // One second at first, one minute at most.
            state.failure?.nextAttempt = now + min(1 << min(UInt64(failure.attempts), 6), 60) * 1_000_000_000
            let isDamaged = failure.error.kind == .damage
            if isDamaged {
                guard (try? ledger.replaceDamaged()) != nil else { return false }
                report(.ledgerReplaced(cause: failure.error.description))
                state.doubts += 1
                for index in state.unrecorded.indices {
                    if case .purge = state.unrecorded[index].entry { state.unrecorded[index].entry = nil }
                }
                state.removedRows = []
                state.hand = EvictionHand(at: 0)
            }
            if (try? record(&state)) != nil { endFailure(&state) }
            return isDamaged
        }
    }

    /// Records durably what could not be recorded, and that the cache is in use.
    @discardableResult
    private func record(_ state: inout State, _ new: Unrecorded? = nil) throws(LedgerError) -> CacheTables.Purged {
        let (all, rows, sequence, hand) = (
            state.unrecorded + (new.map { [$0] } ?? []), state.removedRows, state.sequence, state.hand.position
        )
        // What was not recorded is hidden until this transaction, which therefore has to be complete.
        let inParts = state.unrecorded.isEmpty
        let purged = try change(&state, .full) { tables in
            try tables.setClean(false, hand: hand)
            try tables.delete(rows)
            var latest = CacheTables.Purged()
            for event in all {
                switch event.entry {
                case .purge(let scope):
                    latest = try tables.purge(scope, madeAt: event.time, sequence, inParts: inParts)
                case .revalidation(let doubt):
                    try tables.setSequence(sequence)
                    try tables.setDoubt(doubt, through: sequence)
                case nil: break
                }
                try event.change(tables.database)
            }
            return latest
        }
        state.unrecorded = []
        state.removedRows = []
        hidden.store(0, ordering: .releasing)
        return purged
    }

    /// Remembers what could not be recorded. One purge of everything bounds the scopes, and the oldest changes of others are forgotten:
    /// their callers know that they are not durable.
    private func remember(_ new: Unrecorded, _ state: inout State) {
        if state.unrecorded.count >= Self.mostUnrecorded {
            state.unrecorded = state.unrecorded.suffix(Self.mostUnrecorded / 2).map {
                Unrecorded(entry: nil, change: $0.change)
            }
            state.unrecorded.append(Unrecorded(entry: .purge(.all), change: { _ in }))
            state.unrecorded.append(Unrecorded(entry: .revalidation(.certain), change: { _ in }))
        }
        state.unrecorded.append(new)
    }

    private static var mostUnrecorded: Int { 4096 }

    private func endFailure(_ state: inout State) {
        guard state.failure != nil else { return }
        state.failure = nil
        knownRefusal.withLock { $0 = nil }
        report(.storingResumed)
    }

    /// Makes all changes durable. A power loss before that loses renditions, but no purges.
    func sync() {
        do throws(LedgerError) {
            try ledger.sync()
        } catch {
            state.withLock { note(error, &$0) }
        }
    }

    // MARK: Publishing

    /// Adds a rendition to the cache: names its file, and records it. If the object is stored already, only its reference is recorded.
    ///
    /// - Parameter isWanted: Called under the lock that purges take, too. A purge after it finds the rendition.
    func commit(
        _ job: PublishJob, _ record: ObjectRecord, if isWanted: () -> Bool
    ) throws(UnstoredReason) -> CommittedObject {
        try state.withLock { state throws(UnstoredReason) in
            if let refusal { throw refusal }
            guard isWanted() else { throw .purged }
            if let present = try nameFile(job.staged, record, &state) {
                let alias = try refer(job.alias, to: present.sequence, &state)
                return CommittedObject(row: present, aliasSequence: alias, isNew: false)
            }
            let object = state.sequence + 1
            state.sequence += 2
            do throws(LedgerError) {
                try change(&state) { tables in
                    try tables.insert(record, object)
                    if let alias = job.alias {
                        try tables.insert(alias, leadingTo: object, object + 1)
                    } else {
                        try tables.markUploaded(object)
                    }
                }
            } catch {
                // Without a row the file would be an orphan.
                removeFile(FileName(id: record.id, fileExtension: record.fileExtension), &state)
                throw UnstoredReason(error)
            }
            commits.add(1, ordering: .releasing)
            return CommittedObject(
                row: ObjectRow(sequence: object, record: record, isUploaded: job.alias == nil),
                aliasSequence: job.alias == nil ? 0 : object + 1, isNew: true)
        }
    }

    /// Records an alias to a stored object, or, for nil, that the object was uploaded.
    ///
    /// - Parameter isWanted: See ``commit(_:_:if:)``.
    /// - Returns: The sequence of the alias, 0 without one; nil if the object is no longer stored.
    func commitReference(
        _ alias: AliasRecord?, to object: StoredObject, if isWanted: () -> Bool
    ) throws(UnstoredReason) -> Int64? {
        try state.withLock { state throws(UnstoredReason) in
            if let refusal { throw refusal }
            guard isWanted() else { throw .purged }
            let present = try? ledger.read { try CacheTables($0).objectRow(object.record.id) }
            guard let present, present.sequence == object.sequence else { return nil }
            return try refer(alias, to: object.sequence, &state)
        }
    }

    private func refer(_ alias: AliasRecord?, to object: Int64, _ state: inout State) throws(UnstoredReason) -> Int64 {
        state.sequence += 1
        let sequence = state.sequence
        do throws(LedgerError) {
            try change(&state) { tables in
                if let alias {
                    try tables.insert(alias, leadingTo: object, sequence)
                } else {
                    try tables.markUploaded(object)
                }
            }
        } catch {
            throw UnstoredReason(error)
        }
        commits.add(1, ordering: .releasing)
        return alias == nil ? 0 : sequence
    }

    /// Gives a file its name, durably. The name shows whether the object may be stored already, so the usual new object needs no query.
    ///
    /// - Returns: The row of the object if it is stored already; its file stays.
    private func nameFile(
        _ staged: StagedFile, _ record: ObjectRecord, _ state: inout State
    ) throws(UnstoredReason) -> ObjectRow? {
        let files = directory.objects
        do throws(SystemError) {
            try files.link(staged, as: record.id, record.fileExtension)
        } catch  where error.code == EEXIST {
            if let present = try currentRow(record.id, &state) { return present }
            // A file without a row: left by a crash or a purge.
            do throws(SystemError) {
                try files.remove(record.id, record.fileExtension)
                try files.link(staged, as: record.id, record.fileExtension)
            } catch {
                throw UnstoredReason(error)
            }
        } catch {
            throw UnstoredReason(error)
        }
        do throws(SystemError) {
            try files.syncNames(beside: record.id)
        } catch {
            removeFile(FileName(id: record.id, fileExtension: record.fileExtension), &state)
            throw UnstoredReason(error)
        }
        return nil
    }

    /// The row of an object whose file is about to be replaced.
    private func currentRow(_ id: ObjectID, _ state: inout State) throws(UnstoredReason) -> ObjectRow? {
        do throws(LedgerError) {
            return try ledger.read { try CacheTables($0).objectRow(id) }
        } catch {
            note(error, &state)
            throw UnstoredReason(error)
        }
    }

    // MARK: Purging

    /// Removes what a purge covers, durably. Files, and the rows of objects, follow with ``sweep()``.
    ///
    /// - Parameters:
    ///   - time: See ``Cache/purge(_:madeAt:with:)``.
    ///   - change: Belongs to the same transaction.
    ///   - inForce: Called under the lock, after the rows were removed or hidden. A large purge removes rows in parts, between which
    ///     others change the tables. It is called before the second part, so that no older work is stored any more, and again after the last
    ///     one, so that no look-up has seen older rows.
    /// - Returns: What was removed, and the error if the purge is not durable, such as after ``close()``. It is in force
    ///   nevertheless.
    func purge(
        _ scope: PurgeScope, madeAt time: Int64? = nil, with change: @escaping Ledger.Change, inForce: () -> Void
    ) -> (purged: CacheTables.Purged, failure: LedgerError?) {
        let purge = Unrecorded(entry: .purge(scope), time: time, change: change)
        var (purged, failure) = purgeStep(scope, purge, inForce) { state, purge throws(LedgerError) in
            try record(&state, purge)
        }
        let rest = Unrecorded(entry: .purge(scope), time: time, change: { _ in })
        while failure == nil, purged.isPartial {
            let (part, error) = purgeStep(scope, rest, inForce) { state, _ throws(LedgerError) in
                try self.change(&state) { try $0.continuePurge() } ?? CacheTables.Purged()
            }
            purged.add(part)
            failure = error
        }
        return (purged, failure)
    }

    private func purgeStep(
        _ scope: PurgeScope, _ purge: Unrecorded, _ inForce: () -> Void,
        _ step: (inout State, Unrecorded) throws(LedgerError) -> CacheTables.Purged
    ) -> (purged: CacheTables.Purged, failure: LedgerError?) {
        state.withLock { state in
            defer { inForce() }
            // Another server may have locked the directory since.
            guard !state.isClosed else { return (CacheTables.Purged(), LedgerError(.closed, "the cache is closed")) }
            do throws(LedgerError) {
                return (try step(&state, purge), nil)
            } catch {
                return purgeWithoutSpace(scope, purge, error, &state)
            }
        }
    }

    /// Carries out a purge that could not be recorded, most likely for lack of disk space, which this frees: it removes the files
    /// first.
    private func purgeWithoutSpace(
        _ scope: PurgeScope, _ purge: Unrecorded, _ error: LedgerError, _ state: inout State
    ) -> (purged: CacheTables.Purged, failure: LedgerError?) {
        hidden.store(state.sequence, ordering: .releasing)
        directory.giveUpReserve()
        if error.kind == .fullDisk, let purged = try? record(&state, purge) { return (purged, nil) }
        let files = directory.objects
        _ = try? ledger.read { database in
            try CacheTables(database).forEachFile(coveredBy: scope, madeAt: purge.time) {
                _ = try? files.remove($0.id, $0.fileExtension)
            }
        }
        if error.kind == .fullDisk, let purged = try? record(&state, purge) { return (purged, nil) }
        let count = try? ledger.read { try CacheTables($0).count(scope, madeAt: purge.time) }
        var purged = count ?? CacheTables.Purged()
        purged.objects = nil
        remember(purge, &state)
        return (purged, error)
    }

    /// Has every alias doubted. In force when this returns, durable unless the ledger fails.
    ///
    /// - Parameter change: Belongs to the same transaction.
    func revalidateAll(_ doubt: MissedPurges, with change: @escaping Ledger.Change) {
        state.withLock { state in
            setDoubts { doubts in
                switch doubt {
                case .certain: doubts.certain = state.sequence
                case .possible: doubts.possible = state.sequence
                }
            }
            recordOrRemember(Unrecorded(entry: .revalidation(doubt), change: change), &state)
        }
    }

    /// See ``Cache/holdAliases()``.
    func holdAliases() {
        state.withLock { state in setDoubts { $0.held = state.sequence } }
    }

    /// See ``Cache/doubtAliases()``.
    func doubtAliases() {
        state.withLock { state in setDoubts { $0.alone = state.sequence } }
    }

    /// See ``Cache/confirmAliases()``.
    func confirmAliases() {
        setDoubts { ($0.held, $0.alone) = (0, 0) }
    }

    /// Changes other owners' tables durably, after all purges so far.
    func record(_ change: @escaping Ledger.Change) {
        state.withLock { recordOrRemember(Unrecorded(entry: nil, change: change), &$0) }
    }

    private func recordOrRemember(_ event: Unrecorded, _ state: inout State) {
        guard !state.isClosed, (try? record(&state, event)) == nil else { return }
        remember(event, &state)
    }

    /// Changes other owners' tables in a transaction, unless `isWanted` is false. No purge comes between the two.
    ///
    /// - Returns: Whether the change was committed.
    func record(_ change: Ledger.Change, if isWanted: () -> Bool) -> Bool {
        state.withLock { state in
            guard !state.isClosed, isWanted() else { return false }
            do throws(LedgerError) {
                try ledger.write(.normal, change)
                return true
            } catch {
                note(error, &state)
                return false
            }
        }
    }

    /// Removes the files and rows of a bounded number of purged objects.
    ///
    /// - Returns: Whether there may be more.
    func sweep() -> Bool {
        state.withLock { state in
            guard !state.isClosed, state.failure == nil,
                let doomed = try? ledger.read({ try CacheTables($0).objectsToSweep(limit: Self.objectsPerSweep) })
            else { return false }
            let removed = doomed.filter { object in
                switch isKnown(object.file) {
                // It was published again.
                case true?: true
                case false?: (try? directory.objects.remove(object.file.id, object.file.fileExtension)) != nil
                case nil: false
                }
            }
            guard !removed.isEmpty, (try? change(&state) { try $0.deleteSwept(removed) }) != nil else { return false }
            return removed.count == Self.objectsPerSweep
        }
    }

    // MARK: Removing

    /// Removes one object, unless it was replaced since it was read.
    ///
    /// - Returns: False if it was gone or replaced.
    func forget(_ object: ObjectRow) -> Bool {
        state.withLock { state in
            guard !state.isClosed, let current = try? ledger.read({ try CacheTables($0).objectRow(object.record.id) }),
                current.sequence == object.sequence
            else { return false }
            removeFile(FileName(id: current.record.id, fileExtension: current.record.fileExtension), &state)
            deleteRows([current], &state)
            return true
        }
    }

    /// Evicts objects until they take `wanted` bytes or a bounded number of objects is removed, or a file cannot be removed.
    func evict(atLeast wanted: Int64, visited: VisitedObjects) -> EvictedObjects {
        state.withLock { state in
            guard !state.isClosed else { return EvictedObjects(mayContinue: false) }
            do throws(LedgerError) {
                let ledger = ledger
                let selected = try state.hand.select(atLeast: wanted, visited: visited) { sequence, limit throws(LedgerError) in
                    try ledger.read { try CacheTables($0).objects(after: sequence, limit: limit) }
                }
                guard let selected else { return EvictedObjects(mayContinue: false) }
                return evict(selected, &state)
            } catch {
                note(error, &state)
                return EvictedObjects(mayContinue: false)
            }
        }
    }

    /// Evicts some of the aliases that were not renewed for long and are not in memory, and the objects that only they led to.
    ///
    /// - Returns: The removed objects, whose files follow with ``sweep()``; nil if there is nothing to evict.
    func evictAliases(unless isInUse: (AliasKey) -> Bool) -> [ObjectRow]? {
        state.withLock { state in
            let position = state.aliasHand
            guard !state.isClosed,
                let (last, objects) = try? change(
                    &state, .normal,
                    { tables in
                        try tables.deleteOldestAliases(after: position, limit: 64, unless: isInUse)
                    })
            else { return nil }
            state.aliasHand = last ?? 0
            return last == nil ? nil : objects
        }
    }

    /// Removes files, up to the first that cannot be removed: its object keeps its row, because its bytes stay on the disk. Then
    /// removes the rows.
    private func evict(_ objects: [ObjectRow], _ state: inout State) -> EvictedObjects {
        var evicted = EvictedObjects()
        for object in objects {
            do throws(SystemError) {
                if try directory.objects.remove(object.record.id, object.record.fileExtension) {
                    evicted.objects.append(object)
                } else {
                    evicted.withoutFile.append(object)
                }
            } catch {
                evicted.mayContinue = false
                break
            }
        }
        if !deleteRows(evicted.objects + evicted.withoutFile, &state) { evicted.mayContinue = false }
        return evicted
    }

    /// Removes the rows of objects whose files are removed; later if the ledger fails.
    @discardableResult
    private func deleteRows(_ objects: [ObjectRow], _ state: inout State) -> Bool {
        guard !objects.isEmpty else { return true }
        let sequences = objects.map(\.sequence)
        if (try? change(&state, .normal, { try $0.delete(sequences) })) != nil { return true }
        state.removedRows.formUnion(sequences)
        return false
    }

    /// Removes a file. If that fails, a scan removes it, unless a row leads to it again.
    private func removeFile(_ name: FileName, _ state: inout State) {
        if (try? directory.objects.remove(name.id, name.fileExtension)) == nil { state.doubts += 1 }
    }

    /// Whether there is a row for a file; nil if the ledger cannot be read.
    private func isKnown(_ name: FileName) -> Bool? {
        do throws(LedgerError) {
            return try ledger.read { try CacheTables($0).objectRow(name.id) }?.record.fileExtension == name.fileExtension
        } catch {
            return nil
        }
    }

    // MARK: Files without rows

    /// Whether there may be files without rows; see ``OrphanScan``.
    var needsScan: Bool { scanNumber != nil }

    /// Identifies a scan that begins now; nil if there is nothing to do, or not yet.
    var scanNumber: Int? {
        state.withLock { $0.needsScan && !$0.isClosed && $0.failure == nil ? $0.doubts : nil }
    }

    func finishScan(_ number: Int) {
        state.withLock { $0.scannedDoubts = max($0.scannedDoubts, number) }
    }

    /// Removes a file unless there is a row for it. Returns whether it was removed.
    func removeOrphan(_ name: FileName) -> Bool {
        state.withLock { state in
            guard !state.isClosed, isKnown(name) == false else { return false }
            return (try? directory.objects.remove(name.id, name.fileExtension)) ?? false
        }
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

    private static var objectsPerSweep: Int { 256 }
}
