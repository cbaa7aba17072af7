package import HTTPClient
package import Logging
internal import Synchronization
internal import SystemIO

/// The export of ended spans to a collector (OTLP over HTTP, in JSON), in batches and one request at a time.
///
/// Never blocks callers: if a slow collector fills the queue, further spans are dropped and counted. Thread-safe. Lives as long
/// as the process.
package final class SpanExporter: Sendable {
    /// Returns the limits of the delivery.
    ///
    /// - Parameter items: The maximum number of waiting spans.
    package static func limits(items: Int) -> DeliveryLimits {
        var limits = DeliveryLimits(items: items, attempts: 5, backoff: Backoff(first: .seconds(1), longest: .seconds(30)))
        limits.batch = 512
        limits.interval = .seconds(1)
        return limits
    }

    /// Makes one attempt to send a document, with its own timeout.
    package typealias Send = @Sendable (_ document: String) async -> DeliveryResult

    private let queue: DeliveryQueue<SpanRecord>
    private let meter: LabelledCounter

    /// The values of the counter's label.
    package static let results = ["exported", "failed", "dropped"]

    /// - Parameter meter: Counts spans by their result.
    package init(
        _ resource: TraceResource, limits: DeliveryLimits, meter: LabelledCounter, logger: Logger,
        send: @escaping Send
    ) {
        self.meter = meter
        let log = ExportLog(logger)
        queue = DeliveryQueue(limits) {
            await send(TraceDocument($0, of: resource).text)
        } report: { spans, event in
            switch event {
            case .delivered: meter.increment("exported", by: spans.count)
            case .repeated: break
            case .failed, .stopped: meter.increment("failed", by: spans.count)
            }
            log.note(event)
        }
    }

    /// The number of spans that wait or are being sent.
    package var waiting: Int { queue.count }

    /// Queues an ended span, or drops it if the queue is full.
    func record(_ span: SpanRecord) {
        if !queue.add(span, to: "collector") { meter.increment("dropped") }
    }

    /// Drops further spans, sends the waiting spans, and gives up the rest after the limit.
    package func stop(within limit: Duration) async {
        await queue.stop(within: limit)
    }
}

/// Logs when requests to the collector begin to fail, and when they succeed again.
private final class ExportLog: Sendable {
    private let logger: Logger
    private let isFailing = Mutex(false)

    init(_ logger: Logger) {
        self.logger = logger
    }

    func note(_ event: DeliveryEvent) {
        let failure: String? =
            switch event {
            case .delivered: nil
            case .repeated(let cause), .failed(let cause): cause
            case .stopped: "the server stops"
            }
        let hasChanged = isFailing.withLock { isFailing in
            defer { isFailing = failure != nil }
            return isFailing != (failure != nil)
        }
        guard hasChanged else { return }
        if let failure {
            logger.warning("traces cannot be exported", metadata: ["cause": "\(failure)"])
        } else {
            logger.notice("traces are exported again")
        }
    }
}
