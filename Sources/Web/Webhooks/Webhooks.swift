package import Cache
internal import Digests
package import Fetch
internal import Foundation
package import Logging
package import Prewarm
package import PrometheusMetrics
internal import Renditions
internal import Synchronization
package import SystemIO

/// Sends documents to the URL of a `callback` (docs/api.md, webhooks): the final status of requests that do not wait, and the
/// reports on prewarm jobs.
///
/// Deliveries are signed. Those that fail for a temporary cause are repeated with growing pauses. Their number is bounded, and
/// they are in memory only: a stop drops those that are left. Any thread; lives as long as the process.
package final class Webhooks: Sendable {
    /// The settings of webhooks.
    package struct Policy: Sendable {
        /// The receivers that requests may name; none turns webhooks off.
        package let allow: [SourcePattern]
        /// Signs deliveries; nil turns webhooks off.
        fileprivate let key: HMACSHA256?

        /// - Parameter key: The key; its UTF-8 bytes are the secret.
        package init(allow: [SourcePattern] = [], key: String? = nil) {
            self.allow = allow
            self.key = key.map { HMACSHA256(key: $0.utf8) }
        }
    }

    package struct Limits: Sendable {
        /// Deliveries that wait or are being sent.
        package var deliveries = 1000
        /// Attempts per delivery.
        package var attempts = 6
        package var backoff = Backoff(first: .seconds(1), longest: .seconds(60))

        package init() {}
    }

    /// Sends a document with the fields.
    package typealias Send = @Sendable ([UInt8], SourceURL, [String]) async throws(FetchError) -> Void

    private struct State {
        var policy: Policy
        /// The deliveries that wait or are being sent; nil before the task is registered.
        var tasks: [Int: Task<Void, Never>?] = [:]
        var lastNumber = 0
        var isStopped = false
    }

    private let state: Mutex<State>
    private let limits: Limits
    private let clock: CacheClock
    private let meter: LabelledCounter
    private let logger: Logger
    private let post: Send

    /// The values of the counter's label.
    package static let results = ["delivered", "repeated", "failed", "dropped"]

    /// - Parameter meter: Counts attempts by their result.
    package init(
        _ policy: Policy, limits: Limits = Limits(), clock: CacheClock = .system, meter: LabelledCounter, logger: Logger,
        send: @escaping Send
    ) {
        state = Mutex(State(policy: policy))
        self.limits = limits
        self.clock = clock
        self.meter = meter
        self.logger = logger
        post = send
    }

    /// Puts other settings into force, also for repeated attempts.
    package func apply(_ policy: Policy) {
        state.withLock { $0.policy = policy }
    }

    /// Deliveries that wait or are being sent.
    package var pending: Int { state.withLock { $0.tasks.count } }

    /// The receiver that a request names.
    ///
    /// - Parameter callback: The text of the request.
    /// - Throws: `bad_option` unless the settings permit the receiver.
    func receiver(_ callback: String) throws(Problem) -> SourceURL {
        let policy = state.withLock { $0.policy }
        guard !policy.allow.isEmpty, policy.key != nil else { throw .badOption("callback", "is not available on this server") }
        guard let url = try? SourceURL(callback) else { throw .badOption("callback", "is not an http or https URL") }
        guard policy.allow.contains(where: { $0.matches(url) }) else {
            throw .badOption("callback", "names a receiver that webhooks.allow does not permit")
        }
        return url
    }

    /// Queues a delivery. If there are too many, it is dropped and counted.
    ///
    /// - Parameters:
    ///   - status: The path at which the document can be requested.
    ///   - ended: Called when the receiver has accepted the document, or it was given up. Not called for a delivery that was
    ///     dropped, or that a stop ended.
    func deliver(
        _ document: [UInt8], of status: String, to url: SourceURL, ended: @escaping @Sendable () -> Void = {}
    ) {
        let number: Int? = state.withLock { state in
            guard !state.isStopped, state.tasks.count < limits.deliveries else { return nil }
            state.lastNumber += 1
            state.tasks.updateValue(nil, forKey: state.lastNumber)
            return state.lastNumber
        }
        guard let number else { return meter.increment("dropped") }
        let task = Task {
            if await self.run(document, status, url) { ended() }
            self.state.withLock { _ = $0.tasks.removeValue(forKey: number) }
        }
        let isStopped = state.withLock { state in
            // The task may have ended already.
            if state.tasks.keys.contains(number) { state.tasks.updateValue(task, forKey: number) }
            return state.isStopped
        }
        if isStopped { task.cancel() }
    }

    /// Makes the attempts of a delivery.
    ///
    /// - Returns: False if a stop ended it.
    private func run(_ document: [UInt8], _ status: String, _ url: SourceURL) async -> Bool {
        for attempt in 1...limits.attempts where !Task.isCancelled {
            guard let fields = fields(document, status, url) else { break }
            do throws(FetchError) {
                try await post(document, url, fields)
                meter.increment("delivered")
                return true
            } catch {
                guard Self.mayPass(error), attempt < limits.attempts, !Task.isCancelled else {
                    logger.notice(
                        "webhook failed", metadata: ["host": "\(url.host)", "status_path": "\(status)", "cause": "\(error)"])
                    break
                }
            }
            meter.increment("repeated")
            try? await Task.sleep(for: limits.backoff.pause(after: attempt))
        }
        meter.increment("failed")
        return !Task.isCancelled
    }

    /// The fields of an attempt. The time is a part of what is signed, so that a receiver can refuse a replayed delivery.
    ///
    /// - Returns: Nil if the settings have changed and do not permit the receiver any more.
    private func fields(_ document: [UInt8], _ status: String, _ url: SourceURL) -> [String]? {
        let policy = state.withLock { $0.policy }
        guard let key = policy.key, policy.allow.contains(where: { $0.matches(url) }) else { return nil }
        let time = clock.unixSeconds()
        let code = key.code(for: Array("\(time).".utf8) + document)
        return [
            "Gifreel-Status: \(status)", "Gifreel-Timestamp: \(time)", "Gifreel-Signature: v1=\(Hex.encode(code))",
        ]
    }

    /// Whether another attempt may succeed.
    private static func mayPass(_ error: FetchError) -> Bool {
        switch error {
        case .notAllowed, .notFound, .gone, .cancelled, .closed, .notAGIF, .tooLarge, .tooManyRedirects: false
        case .failed(.status(let status, _)): status == 408 || status == 429 || status >= 500
        case .unreachable, .timeout, .failed, .busy, .exhausted: true
        }
    }

    /// Refuses further deliveries, and drops those that are left.
    package func stop() {
        let tasks = state.withLock { state in
            state.isStopped = true
            return state.tasks.values.compactMap { $0 }
        }
        for task in tasks { task.cancel() }
    }
}

extension Webhooks {
    /// Sends the report on a finished prewarm job to its callback. Once the receiver has accepted it, or it was given up, the queue
    /// records that; until then, the next start of the server sends it again.
    package func report(_ job: PrewarmJob, of queue: PrewarmQueue) {
        guard let callback = job.order.callback, let url = try? SourceURL(callback) else { return }
        deliver(JSONText.encode(PrewarmReport(job, from: nil)), of: "/prewarm/\(job.order.id)", to: url) {
            queue.noteReported(job)
        }
    }

    /// Sends the report on a list that all nodes have processed.
    ///
    /// - Parameter ended: Called when the receiver has accepted it, or it was given up.
    package func report(_ report: PrewarmReport, to callback: String, ended: @escaping @Sendable () -> Void) {
        guard let url = try? SourceURL(callback) else { return ended() }
        deliver(JSONText.encode(report), of: "/prewarm/\(report.id)", to: url, ended: ended)
    }
}
