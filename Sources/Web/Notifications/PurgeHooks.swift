package import CoreMetrics
package import HTTPClient
package import Logging
internal import Synchronization
internal import SystemIO
internal import Telemetry

/// Calls the hooks of the operator after purges, one request per hook at a time and in order.
///
/// Requests that do not fit into the queue are dropped and counted, and a restart discards waiting requests. Any thread; it
/// lives as long as the process.
package final class PurgeHooks: Sendable {
    /// The limits of the calls.
    package struct Limits: Sendable {
        package var deliveries = DeliveryLimits(
            items: 1000, attempts: 8, backoff: Backoff(first: .seconds(1), longest: .seconds(60)))
        /// Incomplete purges whose hooks wait for completion.
        package var purges = 1000
        /// The interval at which incomplete purges are checked.
        package var look = Duration.seconds(1)
        /// The time after which the hooks of an incomplete purge are called anyway, and again when it is complete.
        package var patience = Duration.seconds(30)
        /// The time after which an incomplete purge is no longer checked.
        package var longestWait = Duration.seconds(3600)

        package init() {}
    }

    private struct HookRequest: Sendable {
        let hook: String
        let request: ClientRequest
    }

    private struct State {
        var hooks: [PurgeHook] = []
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

    private let state = Mutex(State())
    private let limits: Limits
    private let queue: DeliveryQueue<HookRequest>
    private let factory: any MetricsFactory
    private let logger: Logger

    /// - Parameter send: Makes one attempt to send a request.
    package init(
        _ limits: Limits = Limits(), factory: any MetricsFactory, logger: Logger,
        send: @escaping @Sendable (ClientRequest) async -> DeliveryResult
    ) {
        self.limits = limits
        self.factory = factory
        self.logger = logger
        queue = DeliveryQueue(limits.deliveries) {
            await send($0[0].request)
        } report: { requests, event in
            let hook = requests[0].hook
            switch event {
            case .delivered: Self.count("delivered", hook, factory)
            case .repeated: Self.count("repeated", hook, factory)
            case .failed, .stopped:
                Self.count("failed", hook, factory)
                let cause = if case .failed(let cause) = event { cause } else { "the server stops" }
                logger.warning("purge hook failed", metadata: ["hook": "\(hook)", "cause": "\(cause)"])
            }
        }
    }

    /// Replaces the hooks. Requests of former ones are still sent.
    package func setHooks(_ hooks: [PurgeHook]) {
        state.withLock { $0.hooks = hooks }
        // Creates the series at 0: an alert on an increase does not see the first value of a series.
        for hook in hooks {
            for result in ["failed", "dropped"] { Self.count(result, hook.name, factory, by: 0) }
        }
    }

    /// Whether a purge calls a hook.
    var isOn: Bool { state.withLock { !$0.hooks.isEmpty } }

    /// The number of requests that wait or are being sent.
    package var waiting: Int { queue.count }

    /// Queues the requests of all hooks for a purge.
    func call(_ notice: PurgeNotice) {
        for hook in state.withLock({ $0.hooks }) {
            for request in hook.requests(for: notice)
            where !queue.add(HookRequest(hook: hook.name, request: request), to: hook.name) {
                Self.count("dropped", hook.name, factory)
                logger.warning("purge hook dropped a request", metadata: ["hook": "\(hook.name)"])
            }
        }
    }

    /// Queues the requests of all hooks for a purge that some node has not applied. They are sent once all nodes have applied
    /// it, so that a CDN that asks again does not get an old rendition. If that takes long, they are sent anyway, and again at
    /// the end.
    ///
    /// - Parameter isComplete: Whether every node has applied the purge.
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
            for var purge in takeHeld() {
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
        for purge in takeHeld() where !purge.isCalled { call(purge.notice) }
    }

    private func takeHeld() -> [Held] {
        state.withLock { state in
            defer { state.held = [] }
            return state.held
        }
    }

    private static func count(_ result: String, _ hook: String, _ factory: any MetricsFactory, by number: Int64 = 1) {
        let dimensions = [("hook", hook), ("result", result)]
        Counter(label: MetricFamily.purgeHooks.name, dimensions: dimensions, factory: factory).increment(by: number)
    }

    /// Refuses further calls, waits for queued requests, and drops those that remain after the limit.
    package func stop(within limit: Duration) async {
        // Ends the wait for incomplete purges, whose requests are sent now.
        let look = state.withLock { state in
            state.isStopped = true
            return state.look
        }
        look?.cancel()
        await look?.value
        await queue.stop(within: limit)
    }
}
