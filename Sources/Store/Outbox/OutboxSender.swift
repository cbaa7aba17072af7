internal import Synchronization
internal import SystemIO

/// The tasks that send the entries of the outbox.
///
/// Entries of one id are sent one after another. After a failure an entry pauses, which may be the cause. A sender pauses as well
/// if the store may be gone, or if no entry is ready that was not refused. Deletions that the store refuses therefore delay other
/// entries only by the pause of a sender.
///
/// Any thread. Blocking work runs on the thread of the outbox.
final class OutboxSender: Sendable {
    private struct State {
        /// Entries that are being sent, or whose end could not be recorded yet.
        var running: [Int64: OutboxEntry] = [:]
        var unrecorded: [(entry: OutboxEntry, error: StoreError?)] = []
        /// Whether each entry is tried at once, and once if it is refused, because the outbox is to be emptied.
        var isDraining = false
        var tasks: [Task<Void, Never>] = []
        var signals: [AsyncSignal] = []
    }

    private let ledger: Ledger
    private let files: OutboxFiles
    private let disk: WorkThreads
    private let waits: OutboxWaits
    private let deletions: OutboxDeletions
    private let meter: OutboxMeter
    private let backoff: Backoff
    private let entryBackoff: Backoff
    private let state = Mutex(State())
    private let start = ContinuousClock.now

    /// - Parameters:
    ///   - disk: The thread of the outbox.
    ///   - backoff: The pauses of a sender after failures. Those of an entry are up to 30 times as long.
    init(
        _ ledger: Ledger, _ files: OutboxFiles, _ disk: WorkThreads, _ waits: OutboxWaits, _ deletions: OutboxDeletions,
        _ meter: OutboxMeter, _ backoff: Backoff
    ) {
        self.ledger = ledger
        self.files = files
        self.disk = disk
        self.waits = waits
        self.deletions = deletions
        self.meter = meter
        self.backoff = backoff
        entryBackoff = Backoff(first: backoff.first, longest: backoff.longest * 30)
    }

    /// Starts to send entries, some at once.
    func start(concurrency: Int, _ send: @escaping Outbox.Send) {
        state.withLock { state in
            for _ in 0..<concurrency {
                let signal = AsyncSignal()
                state.signals.append(signal)
                state.tasks.append(Task { await self.sendEntries(signal, send) })
            }
        }
    }

    /// Cancels the writes under way, which stay in the outbox. Returns at once.
    func cancel() {
        for task in state.withLock({ $0.tasks }) { task.cancel() }
    }

    /// Has the tasks look for entries that may be sent.
    func wake() {
        for signal in state.withLock({ $0.signals }) { signal.signal() }
    }

    /// From now on, tries each entry at once, and only once if it is refused.
    func beginDraining() {
        state.withLock { $0.isDraining = true }
    }

    /// The sequences of the entries that are being sent, or whose end could not be recorded yet.
    var running: Set<Int64> { Set(state.withLock { $0.running.keys }) }

    private enum Claim {
        case entry(OutboxEntry, SharedDescriptor?)
        case nothing(until: Duration)
    }

    private func sendEntries(_ signal: AsyncSignal, _ send: Outbox.Send) async {
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

    /// Takes the entry to send next. Runs on the thread of `disk`.
    private func claim() -> Claim {
        recordOutcomes()
        meter.countEntries(ledger)
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

    private static let longestWait: Duration = .seconds(60)
    /// More than the entries that may be sent and whose ids are those of the 16 that are sent at most.
    private static let candidates = 256

    /// Records the end of an attempt. Runs on the thread of `disk`.
    ///
    /// - Returns: Whether the sender should pause.
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
                    return try outcomes.map { ended in
                        try ended.entry.record(ended.error, in: tables, isDraining: isDraining) { failures in
                            now + Int64(entryBackoff.pause(after: failures) / .microseconds(1))
                        }
                    }
                })
        else { return }
        state.withLock { state in
            state.unrecorded.removeAll()
            for (entry, _) in outcomes { state.running[entry.sequence] = nil }
        }
        for ((entry, error), wasPresent) in zip(outcomes, present) {
            let isRetried = wasPresent && entry.isRetried(after: error)
            if !isRetried, !entry.isDeletion { files.remove(entry.sequence) }
            // The attempt to send an entry that was withdrawn is not the one that a caller waits for.
            guard wasPresent else { continue }
            if let error, !isRetried { meter.noteDiscard(error) }
            if error == nil, entry.isDeletion { deletions.forget(entry.id, unlessIn: ledger) }
            waits.end(entry.attempt, isSent: error == nil)
        }
    }
}
