internal import SystemIO

/// Where a request belongs in a trace: the `traceparent` field of W3C Trace Context, level 1.
package struct TraceParent: Sendable, Hashable, CustomStringConvertible {
    /// 32 hexadecimal digits, not all 0.
    package let traceID: String
    /// 16 hexadecimal digits, not all 0: the span that sends the request.
    package let spanID: String
    /// Whether the caller may have recorded its part (`trace-flags`); the other bits are passed on as they came.
    let flags: String

    /// Parses a field's value (section 3.2.2). A version newer than 00 may carry more at its end, which is left out.
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

    /// The same trace, one span further: what this service is to the origins it asks.
    package func child() -> TraceParent {
        TraceParent(traceID: traceID, spanID: Hex.encode(UInt64.random(in: 1 ... .max)), flags: flags)
    }

    package var description: String { "00-\(traceID)-\(spanID)-\(flags)" }

    /// Lower case only: upper case is malformed.
    private static func isHex(_ text: some StringProtocol, _ count: Int) -> Bool {
        text.utf8.count == count
            && text.utf8.allSatisfy {
                (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains($0)
            }
    }
}
