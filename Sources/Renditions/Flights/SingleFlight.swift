internal import Sandbox
internal import Synchronization
internal import SystemIO

/// Work in progress that several callers share: the first call per key starts the work, and all callers get its outcome.
///
/// - A cancelled caller returns at once. When the last caller has left, work that no worker process has begun is cancelled.
///   Work that a worker has begun goes on, and later callers join it.
/// - Each caller has its own timeout for the time in the queue for a worker, and may have one for its whole wait.
/// - A key becomes free when its work ends in any way. Work that does not end is abandoned after the flight lifetime, so no key
///   stays blocked.
///
/// Any thread; the lock is held for a few dictionary accesses.
final class SingleFlight<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    typealias Work = @Sendable (Flight) async throws(RenditionError) -> Value

    private typealias Outcome = Result<(value: Value, joined: Bool), RenditionError>

    private struct Waiter {
        let continuation: CheckedContinuation<Outcome, Never>
        /// Whether the flight was in progress before the waiter came.
        let joined: Bool
        var timeout: (any AnyObject & Sendable)?
        /// The timer of the whole wait.
        var deadline: (any AnyObject & Sendable)?
    }

    private struct Entry {
        let key: Key
        let flight: Flight
        /// Whether the work may go on without callers.
        var isDetached: Bool
        /// Whether the value is useless after the flight. Overrides ``isDetached``.
        var dependsOnCallers = false
        /// Whether the work waits for a worker, so that the timeouts of callers run.
        var isQueued = false
        var task: Task<Void, Never>?
        var lifetime: (any AnyObject & Sendable)?
        var waiters: [Int: Waiter] = [:]

        /// Whether no caller needs the work any more and no worker has begun it. Work that a worker has begun continues.
        var isAbandoned: Bool { waiters.isEmpty && (dependsOnCallers || !isDetached) && !flight.turn.hasBegun }
    }

    private struct State {
        var entries: [Int: Entry] = [:]
        /// The flights that new callers may join.
        var joinable: [Key: Int] = [:]
        var flightOfWaiter: [Int: Int] = [:]
        var lastNumber = 0
        var queueTimeout: Duration
        var waitTimeout: Duration?
        var lifetime: Duration

        mutating func nextNumber() -> Int {
            lastNumber += 1
            return lastNumber
        }

        mutating func open(_ key: Key, _ urgency: Urgency, _ client: ClientNetwork?, isDetached: Bool) -> Int {
            let number = nextNumber()
            entries[number] = Entry(key: key, flight: Flight(JobTurn(urgency, for: client)), isDetached: isDetached)
            joinable[key] = number
            return number
        }

        /// Removes a flight, so that the next caller starts a new one.
        mutating func remove(_ number: Int) -> Entry? {
            guard let entry = entries.removeValue(forKey: number) else { return nil }
            if joinable[entry.key] == number { joinable[entry.key] = nil }
            for waiter in entry.waiters.keys { flightOfWaiter[waiter] = nil }
            return entry
        }

        /// Removes a flight if its work is of no use any more.
        mutating func removeAbandoned(_ number: Int) -> Entry? { entries[number]?.isAbandoned == true ? remove(number) : nil }
    }

    private let state: Mutex<State>
    private let time: TimeSource
    private let executor: (any TaskExecutor)?

    /// - Parameters:
    ///   - queueTimeout: The longest time that a caller waits for a worker.
    ///   - waitTimeout: The longest time that a caller waits in all, if its wait is bounded; nil for no limit.
    ///   - lifetime: A backstop for the whole work, which has timeouts of its own.
    ///   - executor: Runs the work; nil for Swift's default.
    init(
        queueTimeout: Duration, waitTimeout: Duration? = nil, lifetime: Duration, time: TimeSource = .system,
        executor: (any TaskExecutor)? = nil
    ) {
        state = Mutex(State(queueTimeout: queueTimeout, waitTimeout: waitTimeout, lifetime: lifetime))
        self.time = time
        self.executor = executor
    }

    /// Changes the timeouts of callers and flights that start from now on.
    func setTimeouts(queue: Duration, wait: Duration? = nil, lifetime: Duration) {
        state.withLock { state in
            state.queueTimeout = queue
            state.waitTimeout = wait
            state.lifetime = lifetime
        }
    }

    var count: Int { state.withLock { $0.entries.count } }

    var waiterCount: Int { state.withLock { $0.flightOfWaiter.count } }

    /// Whether a caller with this key would join a flight.
    func isJoinable(_ key: Key) -> Bool {
        state.withLock { $0.joinable[key] != nil }
    }

    /// Returns the value of the flight for `key`, and starts the flight if there is none.
    ///
    /// - Parameters:
    ///   - outlivesCallers: Whether the work goes on when its last caller has left, unless it depends on its callers
    ///     (``Flight/dependOnCallers()``).
    ///   - limit: The longest wait in total, if shorter than the limit for all callers.
    ///   - watch: Follows the flight. A caller with one waits without limit.
    /// - Returns: The value, and whether the flight was in progress before the call.
    /// - Throws: The error of the work; ``RenditionError/overloaded(cause:)`` after the timeout of the queue;
    ///   ``RenditionError/waitTimedOut(limit:)`` after that of the whole wait;
    ///   ``RenditionError/cancelled`` if the calling task is cancelled.
    func value(
        for key: Key, urgency: Urgency = .visitor, client: ClientNetwork? = nil, outlivesCallers: Bool = false,
        within limit: Duration? = nil, watch: MissWatch? = nil, _ work: @escaping Work
    ) async throws(RenditionError) -> (value: Value, joined: Bool) {
        let waiter = state.withLock { $0.nextNumber() }
        let outcome = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                join(waiter, key, urgency, client, outlivesCallers, limit, watch, continuation, work)
                // The cancellation handler may have run before the waiter was registered.
                if Task.isCancelled { leave(waiter, .cancelled) }
            }
        } onCancel: {
            leave(waiter, .cancelled)
        }
        return try outcome.get()
    }

    /// Starts work that goes on without callers, unless a flight for the key is in progress.
    func start(_ key: Key, urgency: Urgency, client: ClientNetwork? = nil, _ work: @escaping Work) {
        let new = state.withLock { state in
            state.joinable[key] == nil ? state.open(key, urgency, client, isDetached: true) : nil
        }
        if let new { run(new, work) }
    }

    /// Prevents later callers from joining the flights whose keys match. The flights go on for their present callers.
    func close(where condition: (Key) -> Bool) {
        state.withLock { state in
            for key in state.joinable.keys.filter(condition) { state.joinable[key] = nil }
        }
    }

    // MARK: Joining

    private func join(
        _ waiter: Int, _ key: Key, _ urgency: Urgency, _ client: ClientNetwork?, _ outlivesCallers: Bool,
        _ limit: Duration?, _ watch: MissWatch?, _ continuation: CheckedContinuation<Outcome, Never>, _ work: @escaping Work
    ) {
        let (number, isNew, isQueued, flight) = state.withLock { state in
            let present = state.joinable[key]
            let number = present ?? state.open(key, urgency, client, isDetached: false)
            state.entries[number]?.flight.turn.raise(to: urgency, for: client)
            if outlivesCallers { state.entries[number]?.isDetached = true }
            state.entries[number]?.waiters[waiter] = Waiter(continuation: continuation, joined: present != nil)
            state.flightOfWaiter[waiter] = number
            return (number, present == nil, state.entries[number]?.isQueued ?? false, state.entries[number]?.flight)
        }
        if let flight { watch?.follow(flight) }
        if watch == nil, !urgency.isBackground { startDeadline(of: waiter, limit) }
        if isNew { run(number, work) }
        if isQueued { startTimeout(of: waiter) }
    }

    private func run(_ number: Int, _ work: @escaping Work) {
        guard let flight = state.withLock({ $0.entries[number]?.flight }) else { return }
        flight.setHandlers(
            queued: { [weak self] in self?.flightIsQueued(number) }, attached: { [weak self] in self?.attach(number) })
        let task = Task(executorPreference: executor) {
            do throws(RenditionError) {
                self.finish(number, .success(try await work(flight)))
            } catch {
                self.finish(number, .failure(error))
            }
        }
        let lifetime = state.withLock { $0.lifetime }
        let deadline = time.after(lifetime) { [weak self] in
            self?.finish(number, .failure(.overloaded(cause: nil)))
        }
        let hasEnded = state.withLock { state in
            state.entries[number]?.task = task
            state.entries[number]?.lifetime = deadline
            return state.entries[number] == nil
        }
        // The work ended, or its last caller left, before the task was registered.
        if hasEnded { task.cancel() }
    }

    // MARK: Timeouts

    private func flightIsQueued(_ number: Int) {
        let waiters = state.withLock { state in
            state.entries[number]?.isQueued = true
            return state.entries[number].map { $0.waiters.keys.sorted() } ?? []
        }
        waiters.forEach(startTimeout)
    }

    private func startTimeout(of waiter: Int) {
        let queueTimeout = state.withLock { $0.queueTimeout }
        let timeout = time.after(queueTimeout) { [weak self] in self?.expire(waiter) }
        state.withLock { state in
            // A waiter that has left releases the timer.
            guard let number = state.flightOfWaiter[waiter] else { return }
            state.entries[number]?.waiters[waiter]?.timeout = timeout
        }
    }

    /// Starts the timer of a caller's whole wait.
    private func startDeadline(of waiter: Int, _ ownLimit: Duration?) {
        let common = state.withLock { $0.waitTimeout }
        guard let limit = [ownLimit, common].compactMap(\.self).min() else { return }
        let deadline = time.after(limit) { [weak self] in self?.leave(waiter, .waitTimedOut(limit: limit)) }
        state.withLock { state in
            guard let number = state.flightOfWaiter[waiter] else { return }
            state.entries[number]?.waiters[waiter]?.deadline = deadline
        }
    }

    private func expire(_ waiter: Int) {
        let hasBegun = state.withLock { state in
            state.flightOfWaiter[waiter].flatMap { state.entries[$0]?.flight.turn.hasBegun } ?? true
        }
        if !hasBegun { leave(waiter, .overloaded(cause: nil)) }
    }

    // MARK: Ending

    /// Ends a flight with an outcome for all its callers. Has no effect on a flight that has ended.
    private func finish(_ number: Int, _ result: Result<Value, RenditionError>) {
        guard let entry = state.withLock({ $0.remove(number) }) else { return }
        entry.task?.cancel()
        // In the order of their calls.
        for (_, waiter) in entry.waiters.sorted(by: { $0.key < $1.key }) {
            waiter.continuation.resume(returning: result.map { (value: $0, joined: waiter.joined) })
        }
    }

    private func leave(_ waiter: Int, _ error: RenditionError) {
        let (left, abandoned) = state.withLock { state -> (Waiter?, Entry?) in
            guard let number = state.flightOfWaiter.removeValue(forKey: waiter),
                let left = state.entries[number]?.waiters.removeValue(forKey: waiter)
            else { return (nil, nil) }
            return (left, state.removeAbandoned(number))
        }
        left?.continuation.resume(returning: .failure(error))
        abandoned?.task?.cancel()
    }

    /// Makes a flight depend on its present and later callers, and ends it if it has none at present.
    private func attach(_ number: Int) {
        let abandoned = state.withLock { state in
            state.entries[number]?.dependsOnCallers = true
            return state.removeAbandoned(number)
        }
        abandoned?.task?.cancel()
    }
}

/// The work of a flight as its steps see it: the position in the queue for workers, and signals to the flight's callers.
package final class Flight: Sendable {
    private struct Handlers {
        var queued: (@Sendable () -> Void)?
        var attached: (@Sendable () -> Void)?
    }

    let turn: JobTurn
    let progress = FlightProgress()
    private let handlers = Mutex(Handlers())

    init(_ turn: JobTurn = JobTurn()) {
        self.turn = turn
    }

    var currentProgress: MissProgress { progress.current(turn) }

    /// Marks the flight as ready to run: only a worker is missing. The queue timeouts of its callers start.
    func markQueued() {
        handlers.withLock { $0.queued }?()
    }

    /// Records that the value is of no use after the flight: without callers, the work is cancelled, even if callers
    /// allowed it to outlive them.
    func dependOnCallers() {
        handlers.withLock { $0.attached }?()
    }

    fileprivate func setHandlers(queued: @escaping @Sendable () -> Void, attached: @escaping @Sendable () -> Void) {
        handlers.withLock { $0 = Handlers(queued: queued, attached: attached) }
    }
}
