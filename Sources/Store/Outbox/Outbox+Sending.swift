internal import Glibc
internal import Synchronization
internal import SystemIO

/// The tasks that send the entries.
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
    func wake() {
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

    /// Records the outcome of an attempt. Runs on the thread of `disk`.
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

    /// Records all outcomes that are not recorded yet. If this fails, their entries are not sent again until it succeeds.
    private func recordOutcomes() {
        let (outcomes, isDraining) = state.withLock { ($0.unrecorded, $0.isDraining) }
        guard !outcomes.isEmpty else { return }
        let (now, backoff) = (now, Backoff(first: settings.pause, longest: settings.longestPause * 30))
        let recorded = try? ledger.write(.normal) { database in
            let tables = OutboxTables(database)
            return try outcomes.map { ended in
                try ended.entry.record(ended.error, in: tables, isDraining: isDraining) { failures in
                    now + Int64(backoff.pause(after: failures) / .microseconds(1))
                }
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
            if error == nil, entry.isDeletion { forgetDeletion(of: entry.id) }
            waits.end(entry.attempt, isSent: error == nil)
        }
    }

    /// Forgets the sent deletion of an id, unless another deletion of the id is queued.
    private func forgetDeletion(of id: ObjectID) {
        deletions.withLock { deletions in
            guard let left = try? ledger.read({ try OutboxTables($0).deletion(of: id) == nil }), left else { return }
            deletions[id] = nil
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

    /// Whether the store may be down.
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
