internal import Instrumentation
internal import ServiceContextModule

/// Takes W3C Trace Context from requests and puts it into others, for swift-distributed-tracing.
///
/// A request without a `traceparent`, or with a malformed one, begins no trace of its own: nobody would collect it.
struct TraceContextPropagator: Instrument {
    func extract<Carrier, Extract: Extractor>(
        _ carrier: Carrier, into context: inout ServiceContext, using extractor: Extract
    ) where Extract.Carrier == Carrier {
        guard let parent = extractor.extract(key: "traceparent", from: carrier).flatMap({ TraceParent($0) }) else { return }
        context.trace = parent.child()
        // What other systems have to say of the trace goes with it as it is, up to the length every party must bear.
        if let state = extractor.extract(key: "tracestate", from: carrier), state.utf8.count <= 512 {
            context.traceState = state
        }
    }

    func inject<Carrier, Inject: Injector>(
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

    /// Those of the current task.
    package static var current: [String] {
        guard let context = ServiceContext.current else { return [] }
        var lines: [String] = []
        TraceContextPropagator().inject(context, into: &lines, using: FieldLines())
        return lines
    }
}
