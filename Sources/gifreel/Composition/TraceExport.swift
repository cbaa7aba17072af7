internal import HTTPClient
internal import Logging
internal import Settings
internal import SystemIO
internal import Telemetry

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

    /// Exports nothing without `tracing.endpoint`.
    ///
    /// - Parameter client: Sends the spans.
    init(_ configuration: ServiceConfiguration, client: HTTPClient, registry: PrometheusRegistry, logger: Logger) {
        let settings = configuration.settings.tracing
        guard let endpoint = settings.endpoint else {
            (tracer, exporter) = (OTLPTracer(nil, share: 0), nil)
            return
        }
        let node = configuration.settings.cluster.node ?? NodeName.current
        let exporter = SpanExporter(
            TraceResource(service: "gifreel", version: Gifreel.version, node: node),
            limits: SpanExporter.limits(items: settings.queue),
            meter: LabelledCounter(MetricFamily.traceSpans, label: "result", values: SpanExporter.results, factory: registry),
            logger: logger
        ) { document in
            var request = ClientRequest(
                "POST", endpoint, fields: settings.headers + ["Content-Type: application/json"],
                body: .bytes(Array(document.utf8)), timeout: Self.requestTimeout)
            request.userAgent = "gifreel/\(Gifreel.version)"
            return await client.deliver(request, temporary: Self.temporary)
        }
        self.exporter = exporter
        tracer = OTLPTracer(exporter, share: Double(settings.sample) / 100)
    }

    /// Sends the remaining spans, within a limit.
    func stop() async {
        await exporter?.stop(within: Self.drainTimeout)
    }
}
