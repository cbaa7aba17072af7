/// The four forms of a request target (RFC 9112 section 3.2).
enum RequestTarget {
    /// Checks the target and reduces an absolute-form to what follows its authority, which then replaces `host`.
    static func resolve(_ head: inout RequestHead, host: Range<Int>?) throws(HTTPProtocolError) {
        head.authority = host ?? 0..<0
        let target = head.bytes.slice(head.target)
        if head.method == .connect {
            // The authority-form asks for a tunnel, which this server is not.
            throw .methodNotImplemented
        }
        switch target[0] {
        case UInt8(ascii: "/"): break
        case UInt8(ascii: "*"):
            guard target.count == 1, head.method == .options else { throw .malformedTarget }
        default: try reduceAbsoluteForm(&head, target)
        }
        guard isURI(head.bytes.slice(head.target)) else { throw .malformedTarget }
    }

    private static func reduceAbsoluteForm(
        _ head: inout RequestHead, _ target: UnsafeRawBufferPointer
    ) throws(HTTPProtocolError) {
        let scheme: Int
        if target.count >= 7, target.slice(0..<7).equalsIgnoringCase("http://") {
            scheme = 7
        } else if target.count >= 8, target.slice(0..<8).equalsIgnoringCase("https://") {
            scheme = 8
        } else {
            throw .malformedTarget
        }
        var end = scheme
        while end < target.count, target[end] != UInt8(ascii: "/"), target[end] != UInt8(ascii: "?") { end += 1 }
        let authority = target.slice(scheme..<end)
        guard Authority.isValid(authority) else { throw .malformedHost }
        // `http://host?query` means `/?query`, which is nowhere in the buffer; no client sends it.
        if end < target.count, target[end] == UInt8(ascii: "?") { throw .malformedTarget }
        let start = head.target.lowerBound
        head.authority = start + scheme..<start + end
        head.target = start + end..<head.target.upperBound
        head.hasEmptyPath = head.target.isEmpty
    }

    /// Visible ASCII is known already; a fragment has no place in a request, and a percent sign needs two hex digits.
    private static func isURI(_ target: UnsafeRawBufferPointer) -> Bool {
        var index = 0
        while index < target.count {
            index = ByteWord.firstMark(in: target, from: index) {
                $0.equal(to: UInt8(ascii: "#")) | $0.equal(to: UInt8(ascii: "%"))
            }
            guard index < target.count else { return true }
            switch target[index] {
            case UInt8(ascii: "#"): return false
            case UInt8(ascii: "%"):
                guard index + 2 < target.count, target[index + 1].hexDigit != nil, target[index + 2].hexDigit != nil
                else { return false }
                index += 3
            default: index += 1
            }
        }
        return true
    }
}
