internal import Synchronization
package import Tracing

/// The tracer of requests, for swift-distributed-tracing.
///
/// A request with a `traceparent` continues the caller's trace, and its spans are exported if the trace is `sampled`. Of the
/// requests without a `traceparent`, the configured share begins a trace. Thread-safe.
package struct OTLPTracer: Tracer {
    private let exporter: SpanExporter?
    /// The sampling rate, from 0 to 1.
    private let share: Double

    /// - Parameters:
    ///   - exporter: Receives the ended spans; nil to record none.
    ///   - share: The share of the requests without a `traceparent` that begin a trace, from 0 to 1.
    package init(_ exporter: SpanExporter?, share: Double) {
        self.exporter = exporter
        self.share = share
    }

    /// Whether the next request is in the configured share, decided at random on each access.
    package var isNextSampled: Bool { exporter != nil && Double.random(in: 0..<1) < share }

    /// Starts a child span of the context's span. Only a span of the kind `server` begins a trace. In a trace that is not
    /// recorded, such a span still becomes the position of this service.
    package func startSpan<Instant: TracerInstant>(
        _ operationName: String, context: @autoclosure () -> ServiceContext, ofKind kind: SpanKind,
        at instant: @autoclosure () -> Instant, function: String, file fileID: String, line: UInt
    ) -> OTLPSpan {
        var context = context()
        let parent = context.trace
        if parent == nil, kind == .server, isNextSampled {
            context.trace = .root()
        } else if let parent, kind == .server || (exporter != nil && parent.isSampled) {
            context.trace = parent.child()
        }
        guard let exporter, let position = context.trace, position.isSampled else { return OTLPSpan(context) }
        let record = SpanRecord(
            name: operationName, position: position, parentSpanID: parent?.spanID, traceState: context.traceState, kind: kind,
            start: instant().nanosecondsSinceEpoch)
        return OTLPSpan(context, record, exporter)
    }

    package func extract<Carrier, Extract: Extractor>(
        _ carrier: Carrier, into context: inout ServiceContext, using extractor: Extract
    ) where Extract.Carrier == Carrier {
        context.setTrace(
            parent: extractor.extract(key: "traceparent", from: carrier),
            state: extractor.extract(key: "tracestate", from: carrier))
    }

    package func inject<Carrier, Inject: Injector>(
        _ context: ServiceContext, into carrier: inout Carrier, using injector: Inject
    ) where Inject.Carrier == Carrier {
        for field in context.traceFields { injector.inject(field.value, forKey: field.name, into: &carrier) }
    }

    /// The trace fields of the current task, as `Name: value` lines.
    package static var currentFields: [String] {
        (ServiceContext.current?.traceFields ?? []).map { "\($0.name): \($0.value)" }
    }

    /// Does nothing: the exporter sends its spans on its own.
    package func forceFlush() {}
}

/// A span of an ``OTLPTracer``. Changes after its end are ignored. Thread-safe.
package final class OTLPSpan: Tracing.Span {
    package let context: ServiceContext
    private let exporter: SpanExporter?
    /// The recorded data; nil after the end, and for a span that records nothing.
    private let record: Mutex<SpanRecord?>

    /// - Parameter record: Nil for a span that records nothing.
    fileprivate init(_ context: ServiceContext, _ record: SpanRecord? = nil, _ exporter: SpanExporter? = nil) {
        self.context = context
        self.exporter = exporter
        self.record = Mutex(record)
    }

    package var isRecording: Bool { record.withLock { $0 != nil } }

    package var operationName: String {
        get { record.withLock { $0?.name ?? "" } }
        set { record.withLock { $0?.name = newValue } }
    }

    package var attributes: SpanAttributes {
        get { record.withLock { $0?.attributes ?? [:] } }
        set { record.withLock { $0?.attributes = newValue } }
    }

    package func setStatus(_ status: SpanStatus) {
        record.withLock { $0?.status = status }
    }

    package func addEvent(_ event: SpanEvent) {
        record.withLock { $0?.add(event) }
    }

    /// Does nothing: no request belongs to more than one trace.
    package func addLink(_ link: SpanLink) {}

    /// Records an error as an event with the attributes of OpenTelemetry's semantic conventions for exceptions.
    package func recordError<Instant: TracerInstant>(
        _ error: any Error, attributes: SpanAttributes, at instant: @autoclosure () -> Instant
    ) {
        guard isRecording else { return }
        var attributes = attributes
        attributes["exception.type"] = "\(type(of: error))"
        attributes["exception.message"] = "\(error)"
        addEvent(SpanEvent(name: "exception", at: instant(), attributes: attributes))
    }

    package func end<Instant: TracerInstant>(at instant: @autoclosure () -> Instant) {
        guard let exporter else { return }
        let end = instant().nanosecondsSinceEpoch
        let ended = record.withLock { record -> SpanRecord? in
            guard var ended = record.take() else { return nil }
            // The system clock may have been set back meanwhile.
            ended.end = max(end, ended.start)
            return ended
        }
        if let ended { exporter.record(ended) }
    }
}

struct SpanRecord: Sendable {
    /// The maximum number of events per span; the rest are only counted.
    static let maxEvents = 16

    var name: String
    let position: TraceParent
    /// The ID of the parent span; nil for the first span of a trace.
    let parentSpanID: String?
    let traceState: String?
    let kind: SpanKind
    /// Nanoseconds since 1970.
    let start: UInt64
    /// Nanoseconds since 1970, not before ``start``. 0 until the end.
    var end: UInt64 = 0
    var attributes = SpanAttributes()
    var status: SpanStatus?
    private(set) var events: [SpanEvent] = []
    private(set) var droppedEvents = 0

    mutating func add(_ event: SpanEvent) {
        if events.count < Self.maxEvents { events.append(event) } else { droppedEvents += 1 }
    }
}
