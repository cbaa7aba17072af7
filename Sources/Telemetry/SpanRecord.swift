internal import Tracing

/// The data that a span has recorded.
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
