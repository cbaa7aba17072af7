package import CoreMetrics
package import HTTPClient
package import Logging
internal import PrometheusMetrics
internal import Synchronization
package import SystemIO

/// Calls the hooks of the operator after purges, one request per hook at a time and in order.
///
/// Requests that fail for a temporary cause are repeated with growing pauses. A hook that fails or hangs delays no other hook. The queue is bounded and in memory: requests that do not fit are dropped and counted, and a restart discards those that wait. Any thread; it lives
/// as long as the process.
package final class PurgeHooks: Sendable {
    /// The limits of the calls.
    package struct Limits: Sendable {
        /// Requests that wait, of all hooks together.
        package var queue = 1000
        /// Attempts per request.
        package var attempts = 8
        package var backoff = Backoff(first: .seconds(1), longest: .seconds(60))
        /// Purges that are not complete and whose hooks wait for that.
        package var purges = 1000
        /// The time between two looks at them.
        package var look = Duration.seconds(1)
        /// The time after which the hooks of an incomplete purge are called all the same, and again when it is complete.
        package var patience = Duration.seconds(30)
        /// The time after which it is given up.
        package var longestWait = Duration.seconds(3600)

        package init() {}
    }

    /// The result of an attempt.
    private enum Outcome {
        case delivered
        case failed(String)
        /// Another attempt may succeed.
        case unavailable(String)
    }

    private struct State {
        var hooks: [PurgeHook] = []
        /// Requests that wait, by the name of their hook.
        var queues: [String: [ClientRequest]] = [:]
        /// One task for each hook with requests.
        var tasks: [String: Task<Void, Never>] = [:]
        var waiting = 0
        var isStopped = false
        /// The notices of incomplete purges.
        var held: [Held] = []
        var look: Task<Void, Never>?
    }

    private struct Held {
        let notice: PurgeNotice
        let isComplete: @Sendable () async -> Bool
        let start: ContinuousClock.Instant
        var isCalled = false
    }

    package typealias Send = @Sendable (ClientRequest) async throws(HTTPError) -> Int

    private let state = Mutex(State())
    private let limits: Limits
    private let send: Send
    private let factory: any MetricsFactory
    private let logger: Logger

    /// - Parameter send: Sends a request and returns the status of the response.
    package init(
        _ limits: Limits = Limits(), factory: any MetricsFactory, logger: Logger, send: @escaping Send
    ) {
        self.limits = limits
        self.send = send
        self.factory = factory
        self.logger = logger
    }

    /// Puts other hooks into force. Requests of former ones are still sent.
    package func setHooks(_ hooks: [PurgeHook]) {
        state.withLock { $0.hooks = hooks }
        // Series that begin at 0: an alert on an increase does not see the first value of a series.
        for hook in hooks {
            for result in ["failed", "dropped"] { count(result, hook.name, by: 0) }
        }
    }

    /// Whether a purge calls a hook.
    var isOn: Bool { state.withLock { !$0.hooks.isEmpty } }

    /// The number of requests that wait or are being sent.
    package var waiting: Int { state.withLock { $0.waiting } }

    /// Queues the requests of all hooks for a purge.
    func call(_ notice: PurgeNotice) {
        for hook in state.withLock({ $0.hooks }) {
            for request in hook.requests(for: notice) where !enqueue(request, of: hook.name) {
                count("dropped", hook.name)
                logger.warning("purge hook dropped a request", metadata: ["hook": "\(hook.name)"])
            }
        }
    }

    /// Queues the requests of all hooks for a purge that is not in force on every node: when it is, so that a CDN that asks again gets no
    /// old rendition. If that takes long, now and then.
    ///
    /// - Parameter isComplete: Whether the purge is in force on every node now.
    func call(_ notice: PurgeNotice, when isComplete: @escaping @Sendable () async -> Bool) {
        let isHeld = state.withLock { state in
            guard !state.isStopped, state.held.count < limits.purges else { return false }
            state.held.append(Held(notice: notice, isComplete: isComplete, start: .now))
            if state.look == nil { state.look = Task { await self.lookAtHeld() } }
            return true
        }
        if !isHeld { call(notice) }
    }

    /// Calls the hooks of purges that have been completed, until none is left.
    private func lookAtHeld() async {
        while !Task.isCancelled {
            try? await Task.sleep(for: limits.look)
            var left: [Held] = []
            let held = state.withLock { state in
                defer { state.held = [] }
                return state.held
            }
            for var purge in held {
                let time = ContinuousClock.now - purge.start
                if Task.isCancelled || time >= limits.longestWait {
                    if !purge.isCalled { call(purge.notice) }
                } else if await purge.isComplete() {
                    call(purge.notice)
                } else {
                    if time >= limits.patience, !purge.isCalled {
                        call(purge.notice)
                        purge.isCalled = true
                    }
                    left.append(purge)
                }
            }
            let isOver = state.withLock { [left] state in
                state.held = left + state.held
                if state.held.isEmpty { state.look = nil }
                return state.held.isEmpty
            }
            if isOver { return }
        }
        let held = state.withLock { state in
            defer { state.held = [] }
            return state.held
        }
        for purge in held where !purge.isCalled { call(purge.notice) }
    }

    private func enqueue(_ request: ClientRequest, of hook: String) -> Bool {
        state.withLock { state in
            guard !state.isStopped, state.waiting < limits.queue else { return false }
            state.waiting += 1
            state.queues[hook, default: []].append(request)
            if state.tasks[hook] == nil { state.tasks[hook] = Task { await self.run(hook) } }
            return true
        }
    }

    private func run(_ hook: String) async {
        while let request = next(hook) {
            await deliver(request, of: hook)
            state.withLock { $0.waiting -= 1 }
        }
    }

    private func next(_ hook: String) -> ClientRequest? {
        state.withLock { state in
            guard state.queues[hook]?.isEmpty == false else {
                state.queues[hook] = nil
                state.tasks[hook] = nil
                return nil
            }
            return state.queues[hook]?.removeFirst()
        }
    }

    private func deliver(_ request: ClientRequest, of hook: String) async {
        for attempt in 1...limits.attempts {
            let cause: String
            switch Task.isCancelled ? .failed("the server stops") : await outcome(of: request) {
            case .delivered: return count("delivered", hook)
            case .failed(let text):
                return giveUp(hook, text)
            case .unavailable(let text): cause = text
            }
            guard attempt < limits.attempts else { return giveUp(hook, cause) }
            count("repeated", hook)
            try? await Task.sleep(for: limits.backoff.pause(after: attempt))
        }
    }

    private func giveUp(_ hook: String, _ cause: String) {
        count("failed", hook)
        logger.warning("purge hook failed", metadata: ["hook": "\(hook)", "cause": "\(cause)"])
    }

    private func outcome(of request: ClientRequest) async -> Outcome {
        do throws(HTTPError) {
            let status = try await send(request)
            if (200...299).contains(status) { return .delivered }
            return status == 408 || status == 429 || status >= 500
                ? .unavailable("status \(status)") : .failed("status \(status)")
        } catch {
            return .unavailable("\(error)")
        }
    }

    private func count(_ result: String, _ hook: String, by number: Int64 = 1) {
        let dimensions = [("hook", hook), ("result", result)]
        Counter(label: Families.purgeHooks.name, dimensions: dimensions, factory: factory).increment(by: number)
    }

    /// Refuses further calls, waits for those that are queued, and gives up those that are left after the limit.
    package func stop(within limit: Duration) async {
        // Those of incomplete purges are sent now.
        let look = state.withLock { $0.look }
        look?.cancel()
        await look?.value
        let tasks = state.withLock { state in
            state.isStopped = true
            return Array(state.tasks.values)
        }
        let watch = Task {
            try? await Task.sleep(for: limit)
            for task in tasks { task.cancel() }
        }
        for task in tasks { await task.value }
        watch.cancel()
    }
}
