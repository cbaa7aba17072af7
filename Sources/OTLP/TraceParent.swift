internal import SystemIO

/// The field `traceparent` of W3C Trace Context, level 1: the position of a request or a span in a trace.
package struct TraceParent: Sendable, Hashable, CustomStringConvertible {
    /// 32 hexadecimal digits, not all 0.
    package let traceID: String
    /// 16 hexadecimal digits, not all 0: the span that sends the request.
    package let spanID: String
    /// `trace-flags`, two hexadecimal digits. Bits other than ``isSampled`` are passed on unchanged.
    private let flags: String

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

    /// Returns the first span of a new trace, which is sampled.
    static func root() -> TraceParent {
        TraceParent(traceID: Hex.encode(UInt128.random(in: 1 ... .max)), spanID: newSpanID(), flags: "01")
    }

    /// Returns a new span of the same trace.
    package func child() -> TraceParent {
        TraceParent(traceID: traceID, spanID: Self.newSpanID(), flags: flags)
    }

    /// Whether the caller may have recorded its part of the trace (section 3.2.2.3.1).
    package var isSampled: Bool { UInt8(flags, radix: 16).map { $0 & 1 == 1 } ?? false }

    package var description: String { "00-\(traceID)-\(spanID)-\(flags)" }

    private static func newSpanID() -> String { Hex.encode(UInt64.random(in: 1 ... .max)) }

    /// Accepts lower case only: upper case is malformed.
    private static func isHex(_ text: some StringProtocol, _ count: Int) -> Bool {
        text.utf8.count == count
            && text.utf8.allSatisfy {
                (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains($0)
            }
    }
}
