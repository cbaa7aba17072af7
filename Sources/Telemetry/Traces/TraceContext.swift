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
    /// The position in the trace: the current span of this service or, before it has one, that of the caller.
    package var trace: TraceParent? {
        get { self[TraceKey.self] }
        set { self[TraceKey.self] = newValue }
    }

    /// The caller's `tracestate`, unchanged.
    package internal(set) var traceState: String? {
        get { self[TraceStateKey.self] }
        set { self[TraceStateKey.self] = newValue }
    }
}

/// Reads the trace of incoming requests and writes that of outgoing ones (W3C Trace Context, level 1).
package struct TraceContextPropagator: Instrument {
    /// The length of `tracestate` in bytes that every participant must propagate (section 3.3.1.5).
    package static let maxStateLength = 512

    package init() {}

    package func extract<Carrier, Extract: Extractor>(
        _ carrier: Carrier, into context: inout ServiceContext, using extractor: Extract
    ) where Extract.Carrier == Carrier {
        guard let parent = extractor.extract(key: "traceparent", from: carrier).flatMap({ TraceParent($0) }) else { return }
        context.trace = parent
        if let state = extractor.extract(key: "tracestate", from: carrier), state.utf8.count <= Self.maxStateLength {
            context.traceState = state
        }
    }

    package func inject<Carrier, Inject: Injector>(
        _ context: ServiceContext, into carrier: inout Carrier, using injector: Inject
    ) where Inject.Carrier == Carrier {
        guard let trace = context.trace else { return }
        injector.inject(trace.description, forKey: "traceparent", into: &carrier)
        if let state = context.traceState { injector.inject(state, forKey: "tracestate", into: &carrier) }
    }
}

/// Writes fields as `Name: value` lines.
package struct FieldLines: Injector {
    package func inject(_ value: String, forKey key: String, into carrier: inout [String]) {
        carrier.append("\(key): \(value)")
    }

    /// The trace fields of the current task.
    package static var current: [String] {
        guard let context = ServiceContext.current else { return [] }
        var lines: [String] = []
        TraceContextPropagator().inject(context, into: &lines, using: FieldLines())
        return lines
    }
}
