internal import Renditions
internal import Synchronization
internal import SystemIO

/// A request that was answered with 202 before its rendition was finished. Any thread.
final class AsyncRequest: Sendable {
    /// The end of the work.
    enum Outcome: Sendable {
        /// The rendition is finished: its address, and its facts if it has any.
        case done(url: String, RenditionFacts?)
        case failed(Problem)
        /// No client wants the rendition any more, or the server stops.
        case cancelled
    }

    private struct State {
        /// Nil after the end, which releases the memory of the work.
        var watch: MissWatch? = MissWatch()
        var task: Task<Void, Never>?
        /// The last progress before the end.
        var progress = MissProgress()
        var outcome: Outcome?
        var streams = 0
    }

    /// The maximum number of concurrent event streams of one request.
    static let mostStreams = 4

    let id: UInt128
    /// The client that asked; nil if it is unknown.
    let client: ClientNetwork?
    private let state = Mutex(State())
    private let waiters = Waiters()

    /// Creates a request with an id that cannot be guessed.
    init(client: ClientNetwork?) {
        id = UInt128.random(in: .min ... .max)
        self.client = client
    }

    var key: String { Hex.encode(id) }

    var path: String { "/status/\(key)" }

    var current: (progress: MissProgress, outcome: Outcome?) {
        state.withLock { ($0.watch?.progress ?? $0.progress, $0.outcome) }
    }

    /// Starts the work in a task.
    ///
    /// - Parameters:
    ///   - work: Does the work; receives the watch for its flight.
    ///   - ended: Called once the work has ended by itself.
    func start(
        _ work: @escaping @Sendable (MissWatch) async -> Outcome, ended: @escaping @Sendable () -> Void
    ) {
        guard let watch = state.withLock({ $0.watch }) else { return }
        let task = Task {
            if end(await work(watch)) { ended() }
        }
        let hasEnded = state.withLock { state in
            if state.outcome == nil { state.task = task }
            return state.outcome != nil
        }
        // The request was cancelled before the task was registered. A task that has ended ignores this.
        if hasEnded { task.cancel() }
    }

    /// Cancels the request: its work ends unless other requests wait for it or a worker has begun it.
    ///
    /// - Returns: False if the work had ended.
    @discardableResult
    func cancel() -> Bool {
        let task = state.withLock { $0.task }
        guard end(.cancelled) else { return false }
        task?.cancel()
        return true
    }

    /// Records the outcome, unless there is one.
    private func end(_ outcome: Outcome) -> Bool {
        let isFirst = state.withLock { state in
            guard state.outcome == nil else { return false }
            state.progress = state.watch?.progress ?? state.progress
            state.watch = nil
            state.task = nil
            state.outcome = outcome
            return true
        }
        if isFirst { waiters.notify() }
        return isFirst
    }

    /// Suspends until the end, the cancellation of the task, or the end of the interval.
    func awaitEnd(within interval: Duration) async {
        await waiters.wait(within: interval) { current.outcome != nil }
    }

    /// Permits another event stream until the returned value is released; nil if there are too many.
    func openStream() -> StreamPermit? {
        let isPermitted = state.withLock { state in
            guard state.streams < Self.mostStreams else { return false }
            state.streams += 1
            return true
        }
        return isPermitted ? StreamPermit { self.state.withLock { $0.streams -= 1 } } : nil
    }

    var openStreams: Int { state.withLock { $0.streams } }
}

/// The permission for one event stream. Releasing the last reference returns it, however the stream ended.
final class StreamPermit: Sendable {
    private let giveBack: @Sendable () -> Void

    init(giveBack: @escaping @Sendable () -> Void) {
        self.giveBack = giveBack
    }

    deinit {
        giveBack()
    }
}
