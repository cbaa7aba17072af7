package import Logging
package import PrometheusMetrics
internal import Synchronization
package import SystemIO

/// Sends ended spans to a collector (OTLP over HTTP, in JSON), in batches and one request at a time.
///
/// It holds up no caller: spans go into a bounded queue in memory, and what does not fit because the collector is slow is dropped
/// and counted. Any thread; lives as long as the process.
package final class SpanExporter: Sendable {
    package struct Limits: Sendable {
        /// Spans that wait.
        package var queue = 2048
        /// Spans of one request.
        package var batch = 512
        /// The time in which spans are collected for a request.
        package var interval = Duration.seconds(1)
        /// Attempts per request.
        package var attempts = 5
        package var backoff = Backoff(first: .seconds(1), longest: .seconds(30))

        package init() {}
    }

    /// The answer of the collector.
    package enum Answer: Sendable {
        case status(Int)
        case unreachable(cause: String)
    }

    /// Sends a document and returns the answer, within a time limit of its own.
    package typealias Send = @Sendable (_ document: String) async -> Answer

    private struct State {
        var queue: [SpanRecord] = []
        /// Sends what is queued; nil while nothing is.
        var task: Task<Void, Never>?
        /// The wait of the task for further spans.
        var pause: Task<Void, Never>?
        var isStopped = false
        /// Whether the last request was not accepted.
        var isFailing = false
    }

    private let state = Mutex(State())
    private let resource: TraceResource
    private let limits: Limits
    private let meter: LabelledCounter
    private let logger: Logger
    private let send: Send

    /// The values of the counter's label.
    package static let results = ["exported", "failed", "dropped"]

    /// - Parameter meter: Counts spans by their result.
    package init(
        _ resource: TraceResource, limits: Limits = Limits(), meter: LabelledCounter, logger: Logger,
        send: @escaping Send
    ) {
        self.resource = resource
        self.limits = limits
        self.meter = meter
        self.logger = logger
        self.send = send
    }

    /// The number of spans that wait for a request.
    package var waiting: Int { state.withLock { $0.queue.count } }

    /// Queues an ended span, or drops it if the queue is full.
    func record(_ span: SpanRecord) {
        let isQueued = state.withLock { state in
            guard !state.isStopped, state.queue.count < limits.queue else { return false }
            state.queue.append(span)
            // Detached: the task must not have the trace of a request.
            if state.task == nil { state.task = Task.detached(priority: .utility) { await self.run() } }
            return true
        }
        if !isQueued { meter.increment("dropped") }
    }

    private func run() async {
        let pause = Task { [interval = limits.interval] in _ = try? await Task.sleep(for: interval) }
        let isStopped = state.withLock { state in
            state.pause = pause
            return state.isStopped
        }
        if isStopped { pause.cancel() }
        await pause.value
        while let batch = nextBatch() { await export(batch) }
    }

    /// Takes the next spans; nil if there are none, and the task ends then.
    private func nextBatch() -> [SpanRecord]? {
        state.withLock { state in
            guard !state.queue.isEmpty else {
                state.task = nil
                state.pause = nil
                return nil
            }
            let batch = Array(state.queue.prefix(limits.batch))
            state.queue.removeFirst(batch.count)
            return batch
        }
    }

    private func export(_ batch: [SpanRecord]) async {
        let document = TraceDocument(batch, of: resource).text
        for attempt in 1...limits.attempts where !Task.isCancelled {
            let answer = await send(document)
            if case .status(200..<300) = answer {
                meter.increment("exported", by: batch.count)
                return note(failure: nil)
            }
            note(failure: answer)
            guard Self.mayPass(answer), attempt < limits.attempts else { break }
            try? await Task.sleep(for: limits.backoff.pause(after: attempt))
        }
        meter.increment("failed", by: batch.count)
    }

    /// Whether another attempt may succeed (OTLP 1, retryable response codes).
    private static func mayPass(_ answer: Answer) -> Bool {
        switch answer {
        case .status(let status): [429, 502, 503, 504].contains(status)
        case .unreachable: true
        }
    }

    /// Logs when requests begin to fail, and when they are accepted again.
    private func note(failure: Answer?) {
        let hasChanged = state.withLock { state in
            defer { state.isFailing = failure != nil }
            return state.isFailing != (failure != nil)
        }
        guard hasChanged else { return }
        switch failure {
        case nil: logger.notice("traces are exported again")
        case .status(let status)?: logger.warning("traces cannot be exported", metadata: ["cause": "status \(status)"])
        case .unreachable(let cause)?: logger.warning("traces cannot be exported", metadata: ["cause": "\(cause)"])
        }
    }

    /// Drops further spans, sends those that wait, and gives up those that are left after the limit.
    ///
    /// Returns at the latest when the limit and the time limit of one request have passed.
    package func stop(within limit: Duration) async {
        let (task, pause) = state.withLock { state in
            state.isStopped = true
            return (state.task, state.pause)
        }
        guard let task else { return }
        pause?.cancel()
        let watch = Task {
            try? await Task.sleep(for: limit)
            task.cancel()
        }
        await task.value
        watch.cancel()
    }
}
