package import Tracing

// The trace of a request, carried by the tasks that process it (`ServiceContext.current`).

private enum TraceKey: ServiceContextKey {
    typealias Value = TraceParent
    static let nameOverride: String? = "traceparent"
}

private enum TraceStateKey: ServiceContextKey {
    typealias Value = String
    static let nameOverride: String? = "tracestate"
}

extension ServiceContext {
    /// The position in the trace: the current span of this service or, before there is one, the caller's span.
    package var trace: TraceParent? {
        get { self[TraceKey.self] }
        set { self[TraceKey.self] = newValue }
    }

    /// The caller's `tracestate`, unchanged.
    package internal(set) var traceState: String? {
        get { self[TraceStateKey.self] }
        set { self[TraceStateKey.self] = newValue }
    }

    /// The length of `tracestate` in bytes that every participant must propagate (W3C Trace Context section 3.3.1.5).
    package static let maxTraceStateLength = 512

    /// Sets the trace from an incoming request's fields (W3C Trace Context, level 1). Does nothing without a valid
    /// `traceparent`.
    package mutating func setTrace(parent: String?, state: String?) {
        guard let parent = parent.flatMap({ TraceParent($0) }) else { return }
        trace = parent
        if let state, state.utf8.count <= Self.maxTraceStateLength { traceState = state }
    }

    /// The trace fields of an outgoing request; empty without a trace.
    var traceFields: [(name: String, value: String)] {
        guard let trace else { return [] }
        return [("traceparent", trace.description)] + (traceState.map { [("tracestate", $0)] } ?? [])
    }
}
