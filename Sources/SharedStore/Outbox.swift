internal import Glibc
internal import Ledger
internal import Synchronization
internal import SystemIO

/// Puts and deletions that wait to be sent, and the tasks that send them.
///
/// The table in the ledger is the state; see ``OutboxTables``. Entries of one id are sent one after another. After a failure an entry
/// pauses, which may be the cause. A sender pauses as well if the store may be gone, or if no entry is ready that was not refused.
/// Deletions that the store refuses therefore delay other entries only by the pause of a sender.
///
/// Any thread. Blocking work runs on a thread of the outbox.
final class Outbox: Sendable {
    /// The bounds of puts. The oldest ones are dropped if a new one exceeds them. Deletions are never dropped: each is a purge that was
    /// confirmed.
    struct Limits: Sendable, Equatable {
        var puts: Int
        var bytes: Int
    }

    struct Gauges: Sendable, Equatable {
        var entries = 0
        var bytes = 0
        /// Puts dropped since the start because there were too many, or because they could not be written to disk or never be sent.
        var dropped = 0
    }

    /// Runs a change in a transaction; returns false if it was not committed.
    typealias Transaction = (@escaping Ledger.Change) async -> Bool
    /// Sends an entry, and the file of a put.
    typealias Send = @Sendable (OutboxEntry, SharedDescriptor?) async throws(StoreError) -> Void

    /// What callers wait for: the end of the next attempt to send a put of that extension, or the deletion.
    private struct Attempt: Hashable {
        let id: String
        let fileExtension: String?

        init(_ name: RenditionName) {
            (id, fileExtension) = (name.id, name.fileExtension)
        }

        init(deletionOf id: String) {
            (self.id, fileExtension) = (id, nil)
        }

        init(_ entry: OutboxEntry) {
            if case .put(let name, _, _) = entry.change { self.init(name) } else { self.init(deletionOf: entry.id) }
        }
    }

    private struct Waiter {
        let attempt: Attempt
        let continuation: CheckedContinuation<Bool, Never>
        /// Ends the wait.
        var deadline: Deadline?
    }

    private enum Outcome {
        case sent
        case failed(StoreError)
    }

    private struct State {
        var gauges = Gauges()
        /// Entries that are being sent, or whose end could not be recorded yet.
        var running: [Int64: OutboxEntry] = [:]
        var unrecorded: [(entry: OutboxEntry, outcome: Outcome)] = []
        var waiters: [UInt64: Waiter] = [:]
        var drainWaiters: [UInt64: CheckedContinuation<Void, Never>] = [:]
        var lastNumber: UInt64 = 0
        /// Whether each entry is tried at once, and once if it is refused, because the outbox is to be emptied.
        var isDraining = false
        var isClosed = false
        var isDiskBroken = false
        var hasDiscarded = false
        var tasks: [Task<Void, Never>] = []
        var signals: [AsyncSignal] = []
    }

    let ledger: Ledger
    private let files: OutboxFiles
    private let limits: Limits
    private let backoff: Backoff
    private let entryBackoff: Backoff
    private let report: @Sendable (StoreEvent) -> Void
    private let disk = WorkThreads(count: 1, limit: 1 << 16, name: "store-outbox")
    private let state = Mutex(State())
    private let lastSequence: Atomic<Int64>
    private let start = ContinuousClock.now

    /// Opens the directory of files and takes over the entries. Blocks.
    ///
    /// - Parameters:
    ///   - ledger: Opened with ``OutboxTables/owned``.
    ///   - backoff: The pauses of a sender after failures. Those of an entry are up to 30 times as long.
    ///   - holdsPuts: Whether puts that are found are sent only after ``releasePuts()``.
    ///   - report: Called for the first put that cannot be written to disk after one that could, and for the first one that can never be
    ///     sent.
    init(
        _ ledger: Ledger, directory: String, limits: Limits, backoff: Backoff, holdsPuts: Bool,
        report: @escaping @Sendable (StoreEvent) -> Void
    ) throws(StoreError) {
        self.ledger = ledger
        self.limits = limits
        self.backoff = backoff
        entryBackoff = Backoff(first: backoff.first, longest: backoff.longest * 30)
        self.report = report
        files = try OutboxFiles(path: directory)
        do {
            let (puts, latest) = try ledger.write(.normal) { try OutboxTables($0).begin(holdingPuts: holdsPuts) }
            lastSequence = Atomic(latest)
            try files.removeAll(except: puts)
        } catch {
            throw (error as? SystemError).map { .file($0) } ?? .exhausted(cause: "\(error)")
        }
        countEntries()
    }

    /// Starts to send entries, some at once. The owner must call ``close()``.
    func startSending(concurrency: Int, _ send: @escaping Send) {
        state.withLock { state in
            for _ in 0..<concurrency {
                let signal = AsyncSignal()
                state.signals.append(signal)
                state.tasks.append(Task { await self.sendEntries(signal, send) })
            }
        }
    }

    /// Cancels the writes under way, which stay in the outbox. Returns at once.
    func endSending() {
        for task in state.withLock({ $0.tasks }) { task.cancel() }
    }

    /// Takes and sends no more entries, and waits for the disk. Blocks.
    func close() {
        endSending()
        let waiting = state.withLock { state in
            state.isClosed = true
            defer { (state.waiters, state.drainWaiters) = ([:], [:]) }
            return (Array(state.waiters.values), Array(state.drainWaiters.values))
        }
        for waiter in waiting.0 { waiter.continuation.resume(returning: false) }
        for continuation in waiting.1 { continuation.resume() }
        wake()
        disk.close()
    }

    var gauges: Gauges { state.withLock(\.gauges) }

    /// On the thread of `disk`, or before it is used.
    private func countEntries() {
        guard let totals = try? ledger.read({ try OutboxTables($0).totals() }) else { return }
        state.withLock { state in
            state.gauges.entries = totals.puts + totals.deletions
            state.gauges.bytes = totals.bytes
        }
    }

    // MARK: Adding

    /// Adds a put, unless one of the same name waits, and suspends until it has been sent, an attempt has failed, or `limit` has passed.
    ///
    /// - Parameters:
    ///   - file: The rendition, which must not change.
    ///   - transaction: Runs the change in a transaction of the ledger, or refuses to because the rendition was purged.
    /// - Returns: Whether it was sent.
    func put(
        _ name: RenditionName, _ file: SharedDescriptor, _ record: StoredRecord, mediaType: String, within limit: Duration,
        in transaction: Transaction
    ) async -> Bool {
        let sequence = lastSequence.add(1, ordering: .relaxed).newValue
        let prepared = await disk.run { [self] in
            Result { () throws(SystemError) in
                try makeRoom(for: record.length)
                try files.add(file, sequence)
            }
        }
        guard case .success = prepared else {
            if case .failure(let error) = prepared { noteDrop(.file(error)) }
            return false
        }
        state.withLock { $0.isDiskBroken = false }
        let isRecorded = await transaction { database in
            try OutboxTables(database).add(name, record, mediaType: mediaType, sequence)
        }
        // One of the same name may wait already.
        _ = disk.submit { [self] in
            countEntries()
            if (try? ledger.read { try OutboxTables($0).contains(sequence) }) == false { files.remove(sequence) }
        }
        guard isRecorded else { return false }
        return await wait(for: Attempt(name), within: limit) { wake() }
    }

    /// Drops the oldest puts beyond the limits.
    private func makeRoom(for length: Int) throws(SystemError) {
        while true {
            let totals = try? ledger.read { try OutboxTables($0).totals() }
            guard let totals, totals.puts >= limits.puts || totals.bytes > limits.bytes - length else { return }
            let running = Set(state.withLock { $0.running.keys })
            let oldest = try? ledger.write(.normal) { try OutboxTables($0).removeOldestPut(except: running) }
            guard let oldest else { throw SystemError("outbox", code: ENOBUFS) }
            files.remove(oldest.sequence)
            state.withLock { $0.gauges.dropped += 1 }
            end(Attempt(oldest), isSent: false)
        }
    }

    private func noteDrop(_ error: StoreError) {
        let isFirst = state.withLock { state in
            state.gauges.dropped += 1
            // A full outbox is no fault of the disk.
            guard error != .file(SystemError("outbox", code: ENOBUFS)) else { return false }
            defer { state.isDiskBroken = true }
            return !state.isDiskBroken
        }
        if isFirst { report(.queueFailed(error)) }
    }

    /// Adds a deletion in a transaction of the caller, and withdraws the entries of the id that it covers. ``deletionAdded(of:)`` must
    /// follow.
    ///
    /// - Parameter time: Seconds since 1970 if only what was created until then is deleted.
    func addDeletion(of id: String, createdUntil time: Int64? = nil, in database: SQLiteConnection) throws {
        let withdrawn = try OutboxTables(database).addDeletion(
            of: id, createdUntil: time, lastSequence.add(1, ordering: .relaxed).newValue)
        // A put that stays because the transaction fails is dropped without its file. It is one that should go.
        removeFiles(withdrawn)
    }

    /// Sends a deletion whose transaction has ended, and ends the waits for puts that it has withdrawn.
    func deletionAdded(of id: String) {
        endWaits { $0.id == id && $0.fileExtension != nil }
        _ = disk.submit { [self] in countEntries() }
        wake()
    }

    /// Adds a deletion in a transaction of its own.
    func delete(_ id: String, createdUntil time: Int64) async {
        _ = await disk.run { [self] in
            try? ledger.write(.normal) { try addDeletion(of: id, createdUntil: time, in: $0) }
        }
        deletionAdded(of: id)
    }

    /// The deletion of an id that waits or is being sent, so that the store may still have what was purged; one of whatever there is
    /// if that is unknown.
    func deletion(of id: String) async -> OutboxTables.Deletion? {
        let found = await disk.run { [ledger] in
            Result { try ledger.read { try OutboxTables($0).deletion(of: id) } }
        }
        guard case .success(let deletion)? = found else { return OutboxTables.Deletion(createdUntil: nil) }
        return deletion
    }

    // MARK: Waiting for an attempt

    /// Suspends until the deletion of this id has been sent, an attempt has failed, or `limit` has passed.
    ///
    /// - Returns: Whether it was sent; true also if there is none.
    func sendDeletion(of id: String, within limit: Duration) async -> Bool {
        let attempt = Attempt(deletionOf: id)
        return await wait(for: attempt, within: limit) {
            // After the registration of the waiter: an attempt that ends in between ends the wait.
            Task { if await deletion(of: id) == nil { end(attempt, isSent: true) } }
        }
    }

    private func wait(for attempt: Attempt, within limit: Duration, _ registered: () -> Void) async -> Bool {
        await withCheckedContinuation { continuation in
            let number = state.withLock { state -> UInt64? in
                guard !state.isClosed else { return nil }
                state.lastNumber += 1
                state.waiters[state.lastNumber] = Waiter(attempt: attempt, continuation: continuation)
                return state.lastNumber
            }
            guard let number else { return continuation.resume(returning: false) }
            registered()
            let deadline = Deadline(after: limit) { [weak self] in
                let waiter = self?.state.withLock { $0.waiters.removeValue(forKey: number) }
                waiter?.continuation.resume(returning: false)
            }
            state.withLock { $0.waiters[number]?.deadline = deadline }
        }
    }

    private func end(_ attempt: Attempt, isSent: Bool) {
        endWaits(isSent: isSent) { $0 == attempt }
    }

    private func endWaits(isSent: Bool = false, _ isEnded: (Attempt) -> Bool) {
        let ended = state.withLock { state in
            let ended = state.waiters.filter { isEnded($0.value.attempt) }
            for number in ended.keys { state.waiters[number] = nil }
            return ended.values
        }
        for waiter in ended { waiter.continuation.resume(returning: isSent) }
    }

    // MARK: Sending

    private enum Claim {
        case entry(OutboxEntry, SharedDescriptor?)
        case nothing(until: Duration)
    }

    private func sendEntries(_ signal: AsyncSignal, _ send: Send) async {
        var failures = 0
        while !Task.isCancelled, let claim = await disk.run({ [self] in self.claim() }) {
            guard case .entry(let entry, let file) = claim else {
                if case .nothing(let pause) = claim { await signal.wait(for: pause) }
                continue
            }
            var outcome = Outcome.sent
            do throws(StoreError) {
                try await send(entry, file)
                failures = 0
            } catch {
                outcome = .failed(error)
            }
            let pauses = await disk.run { [self, outcome] in settle(entry, outcome) } ?? true
            wake()
            guard pauses else { continue }
            failures += 1
            try? await Task.sleep(for: backoff.pause(after: failures))
        }
    }

    private var now: Int64 { Int64((ContinuousClock.now - start) / .microseconds(1)) + 1 }

    /// Takes the entry to send next. Runs on the thread of `disk`.
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
            if running.isEmpty { endDrains() }
            let wait = found.1.map { Duration.microseconds($0 - now) } ?? Self.longestWait
            return .nothing(until: min(wait, Self.longestWait))
        }
        state.withLock { $0.running[entry.sequence] = entry }
        guard case .put = entry.change else { return .entry(entry, nil) }
        do throws(SystemError) {
            return .entry(entry, try files.open(entry.sequence))
        } catch {
            _ = settle(entry, .failed(.file(error)))
            return .nothing(until: .zero)
        }
    }

    private static let longestWait: Duration = .seconds(60)
    /// More than the entries that may be sent and whose ids are those of the 16 that are sent at most.
    private static let candidates = 256

    /// Records the end of an attempt. Runs on the thread of `disk`.
    ///
    /// - Returns: Whether the sender should pause.
    private func settle(_ entry: OutboxEntry, _ outcome: Outcome) -> Bool {
        state.withLock { $0.unrecorded.append((entry, outcome)) }
        recordOutcomes()
        guard case .failed(let error) = outcome, !isFinal(error, entry) else { return false }
        if isOutage(error, entry) { return true }
        if state.withLock(\.isDraining) { return false }
        let now = now
        let next = try? ledger.read { try OutboxTables($0).next(at: now, limit: 1).first }
        return next?.isRefused != false
    }

    /// Records all ends of attempts that are not recorded yet. If that fails, their entries are sent no more until it succeeds.
    private func recordOutcomes() {
        let (outcomes, isDraining) = state.withLock { ($0.unrecorded, $0.isDraining) }
        guard !outcomes.isEmpty else { return }
        let now = now
        guard
            let present = try? ledger.write(
                .normal,
                { database in
                    let tables = OutboxTables(database)
                    return try outcomes.map { try record($0.entry, $0.outcome, tables, now: now, isDraining: isDraining) }
                })
        else { return }
        state.withLock { state in
            state.unrecorded.removeAll()
            for (entry, _) in outcomes { state.running[entry.sequence] = nil }
        }
        for ((entry, outcome), wasPresent) in zip(outcomes, present) {
            var isGone = !wasPresent
            if case .failed(let error) = outcome {
                isGone = isGone || isFinal(error, entry)
                if wasPresent, isFinal(error, entry) { noteDiscard(error) }
            } else {
                isGone = true
            }
            if isGone, !entry.isDeletion { files.remove(entry.sequence) }
            // The attempt to send an entry that was withdrawn is not the one that a caller waits for.
            guard wasPresent else { continue }
            if case .sent = outcome { end(Attempt(entry), isSent: true) } else { end(Attempt(entry), isSent: false) }
        }
    }

    /// - Returns: False if the entry was withdrawn.
    private func record(
        _ entry: OutboxEntry, _ outcome: Outcome, _ tables: OutboxTables, now: Int64, isDraining: Bool
    ) throws -> Bool {
        guard case .failed(let error) = outcome else { return try tables.finish(entry) }
        if isFinal(error, entry) { return try tables.remove(entry.sequence) }
        let isOutage = isOutage(error, entry)
        var due = OutboxTables.Turn.now
        if isDraining {
            if !isOutage { due = OutboxTables.Turn.never }
        } else if error != .suspended {
            due = now + Int64(entryBackoff.pause(after: entry.failures + 1) / .microseconds(1))
        }
        // Without a request nothing is known about the entry.
        return try tables.delay(entry, until: due, isRefused: !isOutage, isAttempt: error != .suspended)
    }

    private func isOutage(_ error: StoreError, _ entry: OutboxEntry) -> Bool {
        error == .suspended || error.isOutage(of: entry.isDeletion ? .delete : .put)
    }

    /// Whether an entry fails each time. An outage ends, and credentials can be replaced. A purge must reach the store, however long that
    /// takes.
    private func isFinal(_ error: StoreError, _ entry: OutboxEntry) -> Bool {
        guard !entry.isDeletion else { return false }
        return switch error {
        case .file(let cause): ![EMFILE, ENFILE, ENOMEM].contains(cause.code)
        case .rejected, .tooLarge, .damaged: true
        default: false
        }
    }

    private func noteDiscard(_ error: StoreError) {
        let isFirst = state.withLock { state in
            state.gauges.dropped += 1
            defer { state.hasDiscarded = true }
            return !state.hasDiscarded
        }
        if isFirst { report(.discarded(error)) }
    }

    // MARK: Holding and draining

    /// Lets entries that failed be sent at once, such as after an outage.
    func endPauses() {
        change { try $0.endPauses() }
    }

    /// Lets puts that are held be sent.
    func releasePuts() {
        change { try $0.releaseHeld() }
    }

    private func change(_ body: @escaping @Sendable (OutboxTables) throws -> Void) {
        _ = disk.submit { [self] in
            _ = try? ledger.write(.normal) { try body(OutboxTables($0)) }
            wake()
        }
    }

    /// Removes puts that are held in a transaction of the caller.
    func dropHeldPuts(in database: SQLiteConnection) throws {
        let held = try OutboxTables(database).removeHeld()
        state.withLock { $0.gauges.dropped += held.count }
        removeFiles(held)
    }

    private func removeFiles(_ sequences: [Int64]) {
        _ = disk.submit { [files] in
            for sequence in sequences { files.remove(sequence) }
        }
    }

    /// Suspends until the outbox is drained or closed, or `limit` has passed. A drained one contains only puts that are held, entries
    /// that were refused since the call, and entries that wait for these. Entries that failed before are tried again at once. From now on,
    /// so are entries that fail because of an outage.
    ///
    /// - Returns: Whether it is empty.
    func drain(within limit: Duration) async -> Bool {
        let number = state.withLock { state in
            state.isDraining = true
            state.lastNumber += 1
            return state.lastNumber
        }
        _ = await disk.run { [ledger] in try? ledger.write(.normal) { try OutboxTables($0).endPauses(includesRefused: true) } }
        var deadline: Deadline?
        await withCheckedContinuation { continuation in
            let mustWait = state.withLock { state in
                if !state.isClosed { state.drainWaiters[number] = continuation }
                return !state.isClosed
            }
            guard mustWait else { return continuation.resume() }
            deadline = Deadline(after: limit) { [weak self] in
                self?.state.withLock { $0.drainWaiters.removeValue(forKey: number) }?.resume()
            }
            wake()
        }
        _ = await disk.run { [self] in countEntries() }
        return withExtendedLifetime(deadline) { gauges.entries == 0 }
    }

    private func endDrains() {
        let ended = state.withLock { state in
            defer { state.drainWaiters = [:] }
            return state.drainWaiters.values
        }
        for continuation in ended { continuation.resume() }
    }

    private func wake() {
        for signal in state.withLock({ $0.signals }) { signal.signal() }
    }
}
