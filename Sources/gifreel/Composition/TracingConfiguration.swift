internal import Fetch
internal import HTTPClient
internal import Logging
internal import Settings
internal import SystemIO
internal import Telemetry

/// The configuration of request tracing, created from the settings.
package struct TracingConfiguration: Sendable {
    fileprivate let endpoint: String
    /// As `Name: value`.
    fileprivate let headers: [String]
    /// The share of the requests without a caller's trace that are traced, from 0 to 1.
    fileprivate let share: Double
    /// Spans that may wait for the collector.
    fileprivate let queue: Int
    /// The name of this node.
    fileprivate let node: String

    /// - Returns: Nil if no traces are exported.
    /// - Throws: ``SettingsError`` if the collector cannot be called.
    init?(_ settings: Settings.Tracing, node: String) throws(SettingsError) {
        guard let endpoint = settings.endpoint else { return nil }
        try SettingParser.checkAddress(endpoint, "tracing.endpoint")
        try SettingParser.checkFields(settings.headers, "tracing.headers")
        self.endpoint = endpoint
        headers = settings.headers
        share = Double(settings.sample) / 100
        queue = settings.queue
        self.node = node
    }
}

/// The tracer of requests, and the exporter of its spans.
struct TraceExport: Sendable {
    let tracer: OTLPTracer
    private let exporter: SpanExporter?

    /// The time limit of one request to the collector.
    private static let requestTimeout = Duration.seconds(5)
    /// The statuses after which a request may be repeated. The protocol forbids that after all others (OTLP 1.0, retryable
    /// response codes).
    private static let temporary: Set = [429, 502, 503, 504]
    /// The time for which a stop waits for the remaining spans.
    private static let drainTimeout = Duration.seconds(3)

    /// - Parameters:
    ///   - configuration: Nil to export nothing.
    ///   - client: Sends the spans.
    init(_ configuration: TracingConfiguration?, client: HTTPClient, registry: PrometheusRegistry, logger: Logger) {
        guard let configuration else {
            (tracer, exporter) = (OTLPTracer(nil, share: 0), nil)
            return
        }
        let exporter = SpanExporter(
            TraceResource(service: "gifreel", version: Gifreel.version, node: configuration.node),
            limits: SpanExporter.limits(items: configuration.queue),
            meter: LabelledCounter(MetricFamily.traceSpans, label: "result", values: SpanExporter.results, factory: registry),
            logger: logger
        ) { document in
            var request = ClientRequest(
                "POST", configuration.endpoint, fields: configuration.headers + ["Content-Type: application/json"],
                body: .bytes(Array(document.utf8)), timeout: Self.requestTimeout)
            request.userAgent = "gifreel/\(Gifreel.version)"
            return await client.deliver(request, temporary: Self.temporary)
        }
        self.exporter = exporter
        tracer = OTLPTracer(exporter, share: configuration.share)
    }

    /// Sends the remaining spans, within a limit.
    func stop() async {
        await exporter?.stop(within: Self.drainTimeout)
    }
}
