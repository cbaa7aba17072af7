internal import Sandbox
internal import Synchronization
internal import SystemIO

/// Work that several callers share while it is in flight: the first one's call begins it, all get its outcome.
///
/// - A caller that is cancelled leaves at once and holds up nobody. When the last one leaves, work that has not come to be
///   done by a worker is cancelled; what is being done goes on to its end, and whoever comes meanwhile joins it.
/// - Each caller waits for a worker only so long, counted for itself.
/// - A key is free again as soon as its work has ended, however it ended; work that does not end at all is given up after
///   its lifetime, so that no key is ever stuck.
///
/// Any thread; the lock is held for a few dictionary accesses.
final class FlightTable<Key: Hashable & Sendable, Outcome: Sendable>: Sendable {
    typealias Work = @Sendable (Flight) async -> Outcome

    /// What a caller gets.
    enum Landing: Sendable {
        /// The outcome; `joined` where the work was in flight already when the caller came.
        case landed(Outcome, joined: Bool)
        /// The caller has waited long enough.
        case timedOut
        /// The calling task was cancelled.
        case cancelled
    }

    private struct Waiter {
        let continuation: CheckedContinuation<Landing, Never>
        let joined: Bool
        var deadline: Deadline?
    }

    private struct Entry {
        let key: Key
        let flight: Flight
        /// Goes on though nobody waits for it.
        let isKept: Bool
        var isQueued = false
        var task: Task<Void, Never>?
        var deadline: Deadline?
        var waiters: [Int: Waiter] = [:]
    }

    private struct State {
        var entries: [Int: Entry] = [:]
        /// The flights that may be joined.
        var open: [Key: Int] = [:]
        /// Which flight a waiter waits for.
        var seats: [Int: Int] = [:]
        var lastNumber = 0
        var patience: Duration
        var lifetime: Duration

        mutating func nextNumber() -> Int {
            lastNumber += 1
            return lastNumber
        }
    }

    private let state: Mutex<State>
    private let executor: (any TaskExecutor)?

    /// - Parameters:
    ///   - patience: How long a caller waits for a worker.
    ///   - lifetime: How long work may take in all; far more than it ever should.
    ///   - executor: Runs the work; nil for Swift's own. A test's decides the order of things.
    init(patience: Duration, lifetime: Duration, executor: (any TaskExecutor)? = nil) {
        state = Mutex(State(patience: patience, lifetime: lifetime))
        self.executor = executor
    }

    /// Changes the timeouts for callers and work that start to wait from now on.
    func setTimeouts(patience: Duration, lifetime: Duration) {
        state.withLock { state in
            state.patience = patience
            state.lifetime = lifetime
        }
    }

    /// Works in flight.
    var count: Int { state.withLock { $0.entries.count } }

    /// Callers that wait.
    var waiterCount: Int { state.withLock { $0.seats.count } }

    /// Whether a caller would join work that is in flight.
    func isOpen(_ key: Key) -> Bool {
        state.withLock { $0.open[key] != nil }
    }

    /// The outcome of the work in flight under the key, which `work` begins where there is none.
    func outcome(of key: Key, urgency: Urgency = .visitor, _ work: @escaping Work) async -> Landing {
        let waiter = state.withLock { $0.nextNumber() }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                board(waiter, key, urgency, continuation, work)
                // A cancellation that came before found nobody to take out.
                if Task.isCancelled { leave(waiter, .cancelled) }
            }
        } onCancel: {
            leave(waiter, .cancelled)
        }
    }

    /// Begins work that goes on though nobody waits for it, unless there is some under the key already.
    func launch(_ key: Key, urgency: Urgency, _ work: @escaping Work) {
        let begun = state.withLock { state in
            state.open[key] == nil ? Self.open(key, urgency, isKept: true, &state) : nil
        }
        if let begun { start(begun, work) }
    }

    /// Lets nobody join what is in flight now under these keys. It goes on for those who wait for it; the next caller begins
    /// anew.
    func close(where condition: (Key) -> Bool) {
        state.withLock { state in
            for key in state.open.keys.filter(condition) { state.open[key] = nil }
        }
    }

    // MARK: Coming

    private func board(
        _ waiter: Int, _ key: Key, _ urgency: Urgency, _ continuation: CheckedContinuation<Landing, Never>,
        _ work: @escaping Work
    ) {
        let (number, isNew, isQueued) = state.withLock { state in
            let present = state.open[key]
            let number = present ?? Self.open(key, urgency, isKept: false, &state)
            state.entries[number]?.flight.turn.raise(to: urgency)
            state.entries[number]?.waiters[waiter] = Waiter(continuation: continuation, joined: present != nil)
            state.seats[waiter] = number
            return (number, present == nil, state.entries[number]?.isQueued ?? false)
        }
        if isNew { start(number, work) }
        if isQueued { limit(waiter) }
    }

    private static func open(_ key: Key, _ urgency: Urgency, isKept: Bool, _ state: inout State) -> Int {
        let number = state.nextNumber()
        state.entries[number] = Entry(key: key, flight: Flight(JobTurn(urgency)), isKept: isKept)
        state.open[key] = number
        return number
    }

    private func start(_ number: Int, _ work: @escaping Work) {
        guard let flight = state.withLock({ $0.entries[number]?.flight }) else { return }
        flight.whenQueued { [weak self] in self?.queued(number) }
        let task = Task(executorPreference: executor) {
            let outcome = await work(flight)
            self.land(number, outcome)
        }
        let lifetime = state.withLock { $0.lifetime }
        let deadline = Deadline(after: lifetime) { [weak self] in self?.giveUp(number) }
        let isGone = state.withLock { state in
            state.entries[number]?.task = task
            state.entries[number]?.deadline = deadline
            return state.entries[number] == nil
        }
        // It landed, or all have left, before its task could be noted.
        if isGone { task.cancel() }
    }

    // MARK: Waiting

    /// The work waits for a worker from now on, and so do all its callers.
    private func queued(_ number: Int) {
        let waiters = state.withLock { state in
            state.entries[number]?.isQueued = true
            return state.entries[number].map { Array($0.waiters.keys) } ?? []
        }
        waiters.forEach(limit)
    }

    private func limit(_ waiter: Int) {
        let patience = state.withLock { $0.patience }
        let deadline = Deadline(after: patience) { [weak self] in self?.expire(waiter) }
        state.withLock { state in
            // One who has left meanwhile lets go of it.
            guard let number = state.seats[waiter] else { return }
            state.entries[number]?.waiters[waiter]?.deadline = deadline
        }
    }

    private func expire(_ waiter: Int) {
        let hasBegun = state.withLock { state in
            state.seats[waiter].flatMap { state.entries[$0]?.flight.turn.hasBegun } ?? true
        }
        if !hasBegun { leave(waiter, .timedOut) }
    }

    // MARK: Going

    private func land(_ number: Int, _ outcome: Outcome) {
        guard let entry = remove(number) else { return }
        for waiter in entry.waiters.values {
            waiter.continuation.resume(returning: .landed(outcome, joined: waiter.joined))
        }
    }

    /// The work does not end: its callers get an answer and its key is free, whatever becomes of it.
    private func giveUp(_ number: Int) {
        for waiter in remove(number)?.waiters.values ?? [:].values { waiter.continuation.resume(returning: .timedOut) }
    }

    private func leave(_ waiter: Int, _ landing: Landing) {
        let (left, unwanted) = state.withLock { state -> (Waiter?, Int?) in
            guard let number = state.seats.removeValue(forKey: waiter),
                let left = state.entries[number]?.waiters.removeValue(forKey: waiter)
            else { return (nil, nil) }
            guard let entry = state.entries[number], entry.waiters.isEmpty, !entry.isKept, !entry.flight.turn.hasBegun
            else { return (left, nil) }
            // It gives its place up under this lock, so that the next caller begins anew instead of getting a cancellation.
            if state.open[entry.key] == number { state.open[entry.key] = nil }
            return (left, number)
        }
        left?.continuation.resume(returning: landing)
        if let unwanted { _ = remove(unwanted) }
    }

    /// Takes a flight out of the table, and ends its tasks as far as they still go on.
    private func remove(_ number: Int) -> Entry? {
        let entry = state.withLock { state -> Entry? in
            guard let entry = state.entries.removeValue(forKey: number) else { return nil }
            if state.open[entry.key] == number { state.open[entry.key] = nil }
            for waiter in entry.waiters.keys { state.seats[waiter] = nil }
            return entry
        }
        entry?.task?.cancel()
        return entry
    }
}
