internal import Instrumentation
internal import ServiceContextModule
internal import SystemIO

// W3C Trace Context, level 1.

/// The field `traceparent`: the position of a request in a trace.
package struct TraceParent: Sendable, Hashable, CustomStringConvertible {
    /// 32 hexadecimal digits, not all 0.
    package let traceID: String
    /// 16 hexadecimal digits, not all 0: the span that sends the request.
    package let spanID: String
    /// `trace-flags`: whether the caller may have recorded its part. The other bits are passed on unchanged.
    let flags: String

    /// Parses the value of the field (section 3.2.2). A version newer than 00 may append values, which are ignored.
    package init?(_ text: some StringProtocol) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count >= 4, Self.isHex(parts[0], 2), parts[0] != "ff", parts[0] != "00" || parts.count == 4,
            Self.isHex(parts[1], 32), parts[1].contains(where: { $0 != "0" }),
            Self.isHex(parts[2], 16), parts[2].contains(where: { $0 != "0" }), Self.isHex(parts[3], 2)
        else { return nil }
        (traceID, spanID, flags) = (String(parts[1]), String(parts[2]), String(parts[3]))
    }

    private init(traceID: String, spanID: String, flags: String) {
        (self.traceID, self.spanID, self.flags) = (traceID, spanID, flags)
    }

    /// Returns a new span of the same trace: this service as the caller of an origin.
    package func child() -> TraceParent {
        TraceParent(traceID: traceID, spanID: Hex.encode(UInt64.random(in: 1 ... .max)), flags: flags)
    }

    package var description: String { "00-\(traceID)-\(spanID)-\(flags)" }

    /// Accepts lower case only: upper case is malformed.
    private static func isHex(_ text: some StringProtocol, _ count: Int) -> Bool {
        text.utf8.count == count
            && text.utf8.allSatisfy {
                (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains($0)
            }
    }
}

/// Reads the trace of incoming requests and writes that of outgoing ones, for swift-distributed-tracing.
///
/// A request without a valid `traceparent` starts no trace: without a caller that records it, no system would collect it.
struct TraceContextPropagator: Instrument {
    /// The length of `tracestate` in bytes that every participant must propagate (section 3.3.1.5).
    private static let maxStateLength = 512

    func extract<Carrier, Extract: Extractor>(
        _ carrier: Carrier, into context: inout ServiceContext, using extractor: Extract
    ) where Extract.Carrier == Carrier {
        guard let parent = extractor.extract(key: "traceparent", from: carrier).flatMap({ TraceParent($0) }) else { return }
        context.trace = parent.child()
        if let state = extractor.extract(key: "tracestate", from: carrier), state.utf8.count <= Self.maxStateLength {
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

    /// The trace fields of the current task.
    package static var current: [String] {
        guard let context = ServiceContext.current else { return [] }
        var lines: [String] = []
        TraceContextPropagator().inject(context, into: &lines, using: FieldLines())
        return lines
    }
}
