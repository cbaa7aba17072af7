internal import SystemIO
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

/// The field `traceparent` of W3C Trace Context, level 1: the position of a request or a span in a trace.
package struct TraceParent: Sendable, Hashable, CustomStringConvertible {
    /// 32 hexadecimal digits, not all 0.
    package let traceID: String
    /// 16 hexadecimal digits, not all 0: the span that sends the request.
    package let spanID: String
    /// `trace-flags`: ``isSampled``, and the random flag of level 2. The others are reserved, and must be zero (section 3.2.2.5.2).
    private let flags: UInt8

    /// Parses the value of the field (section 3.2.2). A version newer than 00 may append values, which are ignored.
    package init?(_ text: String) {
        let start = text.utf8.prefix(Self.length)
        // Ignores the rest, because clients choose its length.
        guard start.count == Self.length else { return nil }
        let parts = start.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false).map {
            String(decoding: $0, as: UTF8.self)
        }
        guard parts.count == 4, parts.map(\.utf8.count) == [2, 32, 16, 2], parts.allSatisfy(Self.isHex), parts[0] != "ff",
            parts[1].utf8.contains(where: { $0 != UInt8(ascii: "0") }),
            parts[2].utf8.contains(where: { $0 != UInt8(ascii: "0") }), let bits = UInt8(parts[3], radix: 16)
        else { return nil }
        if let next = text.utf8.dropFirst(Self.length).first {
            guard parts[0] != "00", next == UInt8(ascii: "-") else { return nil }
        }
        (traceID, spanID, flags) = (parts[1], parts[2], bits & 3)
    }

    /// The length of a value of version 00 in bytes.
    private static let length = 55

    private init(traceID: String, spanID: String, flags: UInt8) {
        (self.traceID, self.spanID, self.flags) = (traceID, spanID, flags)
    }

    /// Returns the first span of a new trace, which is sampled.
    static func root() -> TraceParent {
        TraceParent(traceID: Hex.encode(UInt128.random(in: 1 ... .max)), spanID: newSpanID(), flags: 1)
    }

    /// Returns a new span of the same trace.
    package func child() -> TraceParent {
        TraceParent(traceID: traceID, spanID: Self.newSpanID(), flags: flags)
    }

    /// Returns the same position with another sampling decision.
    package func sampled(_ isSampled: Bool) -> TraceParent {
        TraceParent(traceID: traceID, spanID: spanID, flags: flags & ~1 | (isSampled ? 1 : 0))
    }

    /// Whether the caller may have recorded its part of the trace (section 3.2.2.3.1).
    package var isSampled: Bool { flags & 1 == 1 }

    package var description: String { "00-\(traceID)-\(spanID)-\(Hex.encode(flags))" }

    private static func newSpanID() -> String { Hex.encode(UInt64.random(in: 1 ... .max)) }

    /// Accepts lower case only: upper case is malformed.
    private static func isHex(_ text: String) -> Bool {
        text.utf8.allSatisfy {
            (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains($0)
        }
    }
}
