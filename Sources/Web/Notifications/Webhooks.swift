internal import Digests
package import Fetch
package import Fleet
package import HTTPClient
package import Logging
internal import Renditions
internal import Synchronization
package import SystemIO
package import Telemetry

/// Sends documents to the URL of a `callback` (docs/api.md, webhooks): the final status of asynchronous requests, and the
/// reports on prewarm jobs.
///
/// Deliveries are signed. They are in memory only: a stop drops the remaining ones. Any thread; lives as long as the process.
package final class Webhooks: Sendable {
    /// The settings of webhooks.
    package struct Policy: Sendable {
        /// The receivers that requests may name; none turns webhooks off.
        package let allow: [SourcePattern]
        /// Signs deliveries; nil turns webhooks off.
        fileprivate let key: HMACSHA256?

        /// - Parameter key: The key, whose UTF-8 bytes are the secret.
        package init(allow: [SourcePattern] = [], key: String? = nil) {
            self.allow = allow
            self.key = key.map { HMACSHA256(key: $0.utf8) }
        }
    }

    private struct Delivery: Sendable {
        let document: [UInt8]
        let status: String
        let url: SourceURL
        let ended: @Sendable () -> Void
    }

    package static var limits: DeliveryLimits {
        var limits = DeliveryLimits(items: 1000, attempts: 6, backoff: Backoff(first: .seconds(1), longest: .seconds(60)))
        limits.perReceiver = 16
        limits.leavesRoom = true
        return limits
    }

    /// Sends a document with the fields.
    package typealias Send = @Sendable ([UInt8], SourceURL, [String]) async throws(FetchError) -> Void

    /// The current settings, with which attempts are signed.
    private final class Signer: Sendable {
        private let current: Mutex<Policy>
        private let clock: TimeSource

        init(_ policy: Policy, _ clock: TimeSource) {
            current = Mutex(policy)
            self.clock = clock
        }

        var policy: Policy {
            get { current.withLock { $0 } }
            set { current.withLock { $0 = newValue } }
        }

        /// Returns the fields of an attempt. The signature covers the time, so that a receiver can refuse a replayed delivery.
        ///
        /// - Returns: Nil if the settings have changed and do not permit the receiver any more.
        func fields(_ delivery: Delivery) -> [String]? {
            let policy = policy
            guard let key = policy.key, policy.allow.contains(where: { $0.matches(delivery.url) }) else { return nil }
            let time = clock.unixSeconds
            let code = key.code(for: Array("\(time).".utf8) + delivery.document)
            return [
                "Gifreel-Status: \(delivery.status)", "Gifreel-Timestamp: \(time)", "Gifreel-Signature: v1=\(Hex.encode(code))",
            ]
        }
    }

    private let signer: Signer
    private let queue: DeliveryQueue<Delivery>
    private let meter: LabelledCounter

    /// The values of the counter's label.
    package static let results = ["delivered", "repeated", "failed", "dropped"]

    /// - Parameter meter: Counts attempts by their result.
    package init(
        _ policy: Policy, limits: DeliveryLimits = Webhooks.limits, clock: TimeSource = .system, meter: LabelledCounter,
        logger: Logger, send: @escaping Send
    ) {
        let signer = Signer(policy, clock)
        self.signer = signer
        self.meter = meter
        queue = DeliveryQueue(limits) { deliveries in
            guard let fields = signer.fields(deliveries[0]) else { return .refused(cause: "webhooks.allow has changed") }
            do throws(FetchError) {
                try await send(deliveries[0].document, deliveries[0].url, fields)
                return .delivered
            } catch {
                return Self.result(error)
            }
        } report: { deliveries, event in
            let delivery = deliveries[0]
            switch event {
            case .delivered:
                meter.increment("delivered")
                delivery.ended()
            case .repeated: meter.increment("repeated")
            case .failed(let cause):
                meter.increment("failed")
                logger.notice(
                    "webhook failed",
                    metadata: ["host": "\(delivery.url.host)", "status_path": "\(delivery.status)", "cause": "\(cause)"])
                delivery.ended()
            case .stopped: meter.increment("failed")
            }
        }
    }

    private static func result(_ error: FetchError) -> DeliveryResult {
        switch error {
        case .failed(.status(let status, _, _)): DeliveryResult(status: status)
        case .unreachable, .timeout, .failed, .busy, .exhausted: .unavailable(cause: "\(error)")
        case .notAllowed, .notFound, .gone, .cancelled, .closed, .notAnAnimation, .tooLarge, .tooManyRedirects:
            .refused(cause: "\(error)")
        }
    }

    /// Replaces the settings, including those for retries.
    package func apply(_ policy: Policy) {
        signer.policy = policy
    }

    /// Deliveries that wait or are being sent.
    package var pending: Int { queue.count }

    /// Returns the receiver that a request names.
    ///
    /// - Throws: `bad_option` unless the settings permit the receiver.
    func receiver(_ callback: String) throws(Problem) -> SourceURL {
        let policy = signer.policy
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
        let delivery = Delivery(document: document, status: status, url: url, ended: ended)
        if !queue.add(delivery, to: url.authority) { meter.increment("dropped") }
    }

    /// Refuses further deliveries, and drops the remaining ones.
    package func stop() {
        queue.cancel()
    }
}

extension Webhooks {
    /// Sends the report on a prewarm list that has ended.
    ///
    /// - Parameter ended: Called when the receiver has accepted it, or it was given up.
    package func report(_ report: PrewarmReport, to callback: String, ended: @escaping @Sendable () -> Void) {
        guard let url = try? SourceURL(callback) else { return ended() }
        deliver(JSONText.encode(report), of: "/prewarm/\(report.id)", to: url, ended: ended)
    }
}
