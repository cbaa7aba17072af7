internal import Glibc
internal import Synchronization
internal import SystemIO

/// The queue of puts and deletions to send. Its state is the table in the ledger; see ``OutboxTables``.
///
/// Any thread. Blocking work runs on a thread of the outbox.
package final class Outbox: Sendable {
    typealias Send = @Sendable (OutboxEntry, SharedDescriptor?) async throws(StoreError) -> Void

    private struct State {
        /// Entries that are being sent, or whose outcome could not be recorded yet.
        var running: [Int64: OutboxEntry] = [:]
        var unrecorded: [(entry: OutboxEntry, error: StoreError?)] = []
        /// Whether the outbox is draining: each entry is tried at once, and a refused entry only once.
        var isDraining = false
        var tasks: [Task<Void, Never>] = []
        var signals: [AsyncSignal] = []
        /// Whether the latest put could not be written to disk.
        var isDiskBroken = false
        /// Whether a put that can never be sent was reported.
        var hasDiscarded = false
    }

    let ledger: Ledger
    private let files: OutboxFiles
    private let settings: OutboxConfiguration
    private let disk = WorkThreads(count: 1, limit: 1 << 16, name: "store-outbox")
    private let waits = OutboxWaits()
    private let meter: StoreMeter
    private let state = Mutex(State())
    private let start = ContinuousClock.now
    /// The times of queued deletions, including those being sent, so that a lookup does not wait for a disk.
    private let deletions: Mutex<[ObjectID: Int64]>
    private let lastSequence: Atomic<Int64>
    private let report: @Sendable (StoreEvent) -> Void

    /// Opens the directory of files and loads the existing entries. Blocks.
    ///
    /// - Parameters:
    ///   - ledger: The ledger of a cache, or another ledger with ``OutboxTables/owned``.
    ///   - holdsPuts: Whether existing puts are sent only after ``releasePuts()``.
    ///   - report: Called for the first put that cannot be written to disk since the last success, and for the first put that
    ///     can never be sent.
    init(
        _ ledger: Ledger, _ settings: OutboxConfiguration, _ meter: StoreMeter, holdsPuts: Bool,
        report: @escaping @Sendable (StoreEvent) -> Void
    ) throws(StoreError) {
        self.ledger = ledger
        self.settings = settings
        self.meter = meter
        self.report = report
        do {
            files = try OutboxFiles(path: settings.directory)
            let (puts, latest, found) = try ledger.write(.normal) { database in
                let tables = OutboxTables(database)
                let (puts, latest) = try tables.begin(holdingPuts: holdsPuts)
                return (puts, latest, try tables.deletions())
            }
            lastSequence = Atomic(latest)
            deletions = Mutex(found)
            try files.removeAll(except: puts)
        } catch {
            throw (error as? SystemError).map { .file($0) } ?? .exhausted(cause: "\(error)")
        }
        countEntries()
    }

    /// Stops accepting and sending entries, and waits for the disk. Blocks.
    func close() {
        endSending()
        waits.close()
        wake()
        disk.close()
    }

    // MARK: Adding

    /// Adds a put, unless a put with the same name is queued, and suspends until it has been sent, an attempt has failed, or
    /// `limit` has passed.
    ///
    /// - Parameters:
    ///   - file: The rendition, which must not change.
    ///   - transaction: Runs the change in a transaction of the ledger, or refuses to because the rendition was purged. Returns
    ///     false if it was not committed.
    /// - Returns: Whether it was sent.
    func put(
        _ name: RenditionName, _ file: SharedDescriptor, _ record: StoredRecord, mediaType: String, within limit: Duration,
        in transaction: (@escaping Ledger.Change) async -> Bool
    ) async -> Bool {
        let sequence = lastSequence.add(1, ordering: .relaxed).newValue
        let prepared = await disk.run { [self] in
            Result { () throws(SystemError) in
                try makeRoom(for: record.length)
                try files.add(file, sequence)
            }
        }
        guard case .success = prepared else {
            if case .failure(let error) = prepared { noteDrop(error) }
            return false
        }
        state.withLock { $0.isDiskBroken = false }
        let registered = Mutex<Int?>(nil)
        let isRecorded = await transaction { [waits] database in
            // A put with the same name may already be queued.
            let queued = try OutboxTables(database).add(name, record, mediaType: mediaType, sequence)
            // Before the transaction ends: a task may send the entry before this one continues.
            registered.withLock { $0 = waits.register(.put(name, queued)) }
        }
        let wait = registered.withLock(\.self)
        _ = disk.submit { [self] in
            countEntries()
            if (try? ledger.read { try OutboxTables($0).contains(sequence) }) == false { files.remove(sequence) }
        }
        guard let wait else { return false }
        guard isRecorded else {
            waits.cancel(wait)
            return false
        }
        wake()
        return await waits.wait(wait, within: limit)
    }

    /// Drops the oldest puts beyond the limits. Deletions are never dropped: each is a confirmed purge.
    private func makeRoom(for length: Int) throws(SystemError) {
        guard length <= settings.maxBytes else { throw SystemError("outbox", code: ENOBUFS) }
        while true {
            let totals = try? ledger.read { try OutboxTables($0).totals() }
            guard let totals, totals.puts >= settings.maxEntries || totals.bytes > settings.maxBytes - length else { return }
            let running = Set(state.withLock { $0.running.keys })
            let oldest = try? ledger.write(.normal) { try OutboxTables($0).removeOldestPut(except: running) }
            guard let oldest else { throw SystemError("outbox", code: ENOBUFS) }
            files.remove(oldest.sequence)
            meter.update { $0.droppedWrites += 1 }
            waits.end(oldest.attempt, isSent: false)
        }
    }

    /// Counts a put that could not be written to disk, and reports the first such put since the last success.
    private func noteDrop(_ error: SystemError) {
        meter.update { $0.droppedWrites += 1 }
        // A full outbox is no fault of the disk.
        if error == SystemError("outbox", code: ENOBUFS) { return }
        let wasBroken = state.withLock { state in
            defer { state.isDiskBroken = true }
            return state.isDiskBroken
        }
        if !wasBroken { report(.queueFailed(.file(error))) }
    }

    /// Counts a put that can never be sent, and reports the first such put.
    private func noteDiscard(_ error: StoreError) {
        meter.update { $0.droppedWrites += 1 }
        let isFirst = state.withLock { state in
            defer { state.hasDiscarded = true }
            return !state.hasDiscarded
        }
        if isFirst { report(.discarded(error)) }
    }

    /// Updates the metrics of queued entries and bytes. Blocks.
    private func countEntries() {
        guard let totals = try? ledger.read({ try OutboxTables($0).totals() }) else { return }
        meter.update { ($0.queuedWrites, $0.queuedBytes) = (totals.puts + totals.deletions, totals.bytes) }
    }

    /// Adds a deletion in the caller's transaction, and withdraws the entries that it covers. The caller must then call
    /// ``sendDeletion(of:)``. After the transaction, lookups do not find what the deletion covers.
    ///
    /// - Parameter time: Only what began until this time is deleted, in milliseconds of the cluster's clock.
    func addDeletion(of id: ObjectID, until time: Int64, in database: SQLiteConnection) throws {
        let withdrawn = try OutboxTables(database).addDeletion(
            of: id, until: time, lastSequence.add(1, ordering: .relaxed).newValue)
        // If the transaction fails, lookups miss an object that is due for removal in any case.
        deletions.withLock { $0[id] = max(time, $0[id] ?? time) }
        // If the transaction fails, a withdrawn put stays without its file and is dropped later, as it should be.
        removeFiles(withdrawn)
    }

    /// Sends a deletion whose transaction has ended, and ends the waits for puts that it has withdrawn.
    func sendDeletion(of id: ObjectID) {
        waits.endPuts(of: id)
        _ = disk.submit { [self] in countEntries() }
        wake()
    }

    func delete(_ id: ObjectID, until time: Int64) async {
        _ = await disk.run { [self] in
            try? ledger.write(.normal) { try addDeletion(of: id, until: time, in: $0) }
        }
        sendDeletion(of: id)
    }

    /// Returns the time of the queued deletion of an id, including one being sent: the store may still have what was purged.
    /// Never waits for a disk.
    func deletion(of id: ObjectID) -> Int64? {
        deletions.withLock { $0[id] }
    }

    /// Suspends until the deletion of this id has been sent, an attempt has failed, or `limit` has passed.
    ///
    /// - Returns: True if the deletion was sent or there is none. Otherwise, it stays queued.
    @discardableResult
    package func awaitDeletion(of id: ObjectID, within limit: Duration) async -> Bool {
        await waits.wait(for: .deletion(id), within: limit) {
            // Checked after the waiter is registered, so that an attempt that ends in between ends the wait.
            if deletion(of: id) == nil { waits.end(.deletion(id), isSent: true) }
        }
    }

    // MARK: Holding and draining

    /// Makes failed entries ready to be sent at once, such as after an outage.
    func endPauses() {
        change { try $0.endPauses() }
    }

    /// Releases held puts for sending.
    package func releasePuts() {
        change { try $0.releaseHeld() }
    }

    private func change(_ body: @escaping @Sendable (OutboxTables) throws -> Void) {
        _ = disk.submit { [self] in
            _ = try? ledger.write(.normal) { try body(OutboxTables($0)) }
            wake()
        }
    }

    /// Removes held puts in the caller's transaction, because other nodes may have removed these renditions.
    func dropHeldPuts(in database: SQLiteConnection) throws {
        let held = try OutboxTables(database).removeHeld()
        meter.update { $0.droppedWrites += held.count }
        removeFiles(held)
    }

    private func removeFiles(_ sequences: [Int64]) {
        _ = disk.submit { [files] in
            for sequence in sequences { files.remove(sequence) }
        }
    }

    /// Suspends until the outbox is drained or closed, or `limit` has passed. A drained outbox contains only held puts, entries
    /// that were refused since the call, and entries that wait for these. Entries that failed earlier are retried at once; from
    /// now on, so are entries that fail because of an outage.
    ///
    /// - Returns: Whether it is empty.
    package func drain(within limit: Duration) async -> Bool {
        state.withLock { $0.isDraining = true }
        _ = await disk.run { [ledger] in try? ledger.write(.normal) { try OutboxTables($0).endPauses(includesRefused: true) } }
        _ = await waits.wait(for: .drained, within: limit) { wake() }
        _ = await disk.run { [self] in countEntries() }
        return meter.snapshot.queuedWrites == 0
    }
}

// MARK: Sending

/// Sends the entries.
///
/// Entries with the same id are sent one after another. After a failure, the entry pauses, since it may be the cause. The
/// sender also pauses if the store may be down, or if every ready entry was refused before. Refused deletions therefore delay
/// other entries only by the pause of a sender.
extension Outbox {
    /// Starts to send entries, `concurrency` at a time. The owner must call ``close()``.
    func startSending(concurrency: Int, _ send: @escaping Send) {
        state.withLock { state in
            for _ in 0..<concurrency {
                let signal = AsyncSignal()
                state.signals.append(signal)
                state.tasks.append(Task { await self.sendEntries(signal, send) })
            }
        }
    }

    /// Cancels the writes in progress, which stay in the outbox. Returns immediately.
    package func endSending() {
        for task in state.withLock({ $0.tasks }) { task.cancel() }
    }

    /// Wakes the tasks to look for entries that may be sent.
    private func wake() {
        for signal in state.withLock({ $0.signals }) { signal.signal() }
    }

    private enum Claim {
        case entry(OutboxEntry, SharedDescriptor?)
        case nothing(until: Duration)
    }

    private func sendEntries(_ signal: AsyncSignal, _ send: Send) async {
        let backoff = Backoff(first: settings.pause, longest: settings.longestPause)
        var failures = 0
        while !Task.isCancelled, let claim = await disk.run({ [self] in self.claim() }) {
            guard case .entry(let entry, let file) = claim else {
                if case .nothing(let pause) = claim { await signal.wait(for: pause) }
                continue
            }
            var failure: StoreError?
            do throws(StoreError) {
                try await send(entry, file)
                failures = 0
            } catch {
                failure = error
            }
            let pauses = await disk.run { [self, failure] in settle(entry, failure) } ?? true
            wake()
            guard pauses else { continue }
            failures += 1
            try? await Task.sleep(for: backoff.pause(after: failures))
        }
    }

    private var now: Int64 { Int64((ContinuousClock.now - start) / .microseconds(1)) + 1 }

    /// Claims the entry to send next. Runs on the thread of `disk`.
    private func claim() -> Claim {
        recordOutcomes()
        countEntries()
        let (running, unsent) = state.withLock { ($0.running, $0.unrecorded.count) }
        let ids = Set(running.values.map(\.id))
        let now = now
        let found = try? ledger.read { database in
            let tables = OutboxTables(database)
            return (
                try tables.next(at: now, limit: Self.candidates).first { !ids.contains($0.id) },
                try tables.nextTurn(after: now)
            )
        }
        guard let found, unsent == 0 else { return .nothing(until: .seconds(1)) }
        guard let entry = found.0 else {
            if running.isEmpty { waits.end(.drained, isSent: true) }
            let wait = found.1.map { Duration.microseconds($0 - now) } ?? Self.longestWait
            return .nothing(until: min(wait, Self.longestWait))
        }
        state.withLock { $0.running[entry.sequence] = entry }
        guard case .put = entry.change else { return .entry(entry, nil) }
        do throws(SystemError) {
            return .entry(entry, try files.open(entry.sequence))
        } catch {
            _ = settle(entry, .file(error))
            return .nothing(until: .zero)
        }
    }

    private static var longestWait: Duration { .seconds(60) }
    /// More than the ready entries that can share an id with one of the at most 16 entries being sent.
    private static var candidates: Int { 256 }

    /// Records the outcome of an attempt. Returns whether the sender should pause. Runs on the thread of `disk`.
    private func settle(_ entry: OutboxEntry, _ error: StoreError?) -> Bool {
        state.withLock { $0.unrecorded.append((entry, error)) }
        recordOutcomes()
        guard entry.isRetried(after: error) else { return false }
        if entry.isOutage(error) { return true }
        if state.withLock(\.isDraining) { return false }
        let now = now
        let next = try? ledger.read { try OutboxTables($0).next(at: now, limit: 1).first }
        return next?.isRefused != false
    }

    /// Records all outcomes that are not recorded yet. If this fails, their entries are not sent again until it succeeds.
    private func recordOutcomes() {
        let (outcomes, isDraining) = state.withLock { ($0.unrecorded, $0.isDraining) }
        guard !outcomes.isEmpty else { return }
        let (now, backoff) = (now, Backoff(first: settings.pause, longest: settings.longestPause * 30))
        let recorded = try? ledger.write(.normal) { database in
            let tables = OutboxTables(database)
            return try outcomes.map { ended in
                let wasPresent = try ended.entry.record(ended.error, in: tables, isDraining: isDraining) { failures in
                    now + Int64(backoff.pause(after: failures) / .microseconds(1))
                }
                // An id has at most one deletion, so none is left. Forgotten here, because the ledger's lock keeps another one
                // from being added in between. If the transaction fails, the deletion has been sent all the same.
                if wasPresent, ended.error == nil, ended.entry.isDeletion { deletions.withLock { $0[ended.entry.id] = nil } }
                return wasPresent
            }
        }
        guard let recorded else { return }
        state.withLock { state in
            state.unrecorded.removeAll()
            for (entry, _) in outcomes { state.running[entry.sequence] = nil }
        }
        for ((entry, error), wasPresent) in zip(outcomes, recorded) {
            let isRetried = wasPresent && entry.isRetried(after: error)
            if !isRetried, !entry.isDeletion { files.remove(entry.sequence) }
            // No caller waits for the attempt to send a withdrawn entry.
            guard wasPresent else { continue }
            if let error, !isRetried { noteDiscard(error) }
            waits.end(entry.attempt, isSent: error == nil)
        }
    }
}

/// The consequences of an attempt to send an entry, given its error, or nil if the entry was sent.
extension OutboxEntry {
    /// Whether the entry stays in the outbox. An outage ends, and credentials can be replaced. A purge must reach the store,
    /// however long that takes.
    fileprivate func isRetried(after error: StoreError?) -> Bool {
        guard let error else { return false }
        if isDeletion { return true }
        return switch error {
        case .file(let cause): [EMFILE, ENFILE, ENOMEM].contains(cause.code)
        case .rejected, .tooLarge, .damaged: false
        default: true
        }
    }

    fileprivate func isOutage(_ error: StoreError?) -> Bool {
        error == .suspended || error?.isOutage(of: isDeletion ? .delete : .put) == true
    }

    /// Removes or delays the entry.
    ///
    /// - Parameters:
    ///   - isDraining: Whether each entry is tried once more and then given up.
    ///   - due: Returns when an entry with that number of failures may be sent again.
    /// - Returns: False if the entry was withdrawn.
    fileprivate func record(
        _ error: StoreError?, in tables: OutboxTables, isDraining: Bool, due: (_ failures: Int) -> Int64
    ) throws -> Bool {
        guard let error else { return try tables.finish(self) }
        guard isRetried(after: error) else { return try tables.remove(sequence) }
        let isOutage = isOutage(error)
        var turn = OutboxTables.Turn.now
        if isDraining {
            if !isOutage { turn = OutboxTables.Turn.never }
        } else if error != .suspended {
            turn = due(failures + 1)
        }
        // Without a request, the failure says nothing about the entry.
        return try tables.delay(self, until: turn, isRefused: !isOutage, isAttempt: error != .suspended)
    }
}

package struct OutboxConfiguration: Sendable, Equatable {
    /// The directory of the queued renditions, which belongs to one process. It should be on the cache's file system, so that
    /// renditions are linked and not copied.
    package var directory: String
    /// The largest number of queued renditions. Deletions do not count.
    package var maxEntries = 10_000
    /// The largest total length of queued renditions in bytes.
    package var maxBytes: Int
    /// Writes that are sent concurrently.
    package var uploads = 2
    /// The pause of a sender after a failed write, and of the write before its next attempt. Both double with each further
    /// failure.
    package var pause: Duration = .milliseconds(250)
    /// The longest pause of a sender after a failed write; that of the write is 30 times as long.
    package var longestPause: Duration = .seconds(2)

    package init(directory: String, maxBytes: Int) {
        self.directory = directory
        self.maxBytes = maxBytes
    }
}
