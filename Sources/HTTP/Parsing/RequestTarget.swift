internal import Glibc
internal import SystemIO

/// The four forms of a request target (RFC 9112 section 3.2).
enum RequestTarget {
    /// Checks the target and reduces an absolute-form to the part after its authority, which then replaces `host`.
    static func resolve(_ head: inout RequestHead, host: Range<Int>?) throws(HTTPProtocolError) {
        head.authority = host ?? 0..<0
        let target = head.bytes.slice(head.target)
        if head.method == .connect {
            // The authority-form requests a tunnel, which this server does not provide.
            throw .methodNotImplemented
        }
        switch target[0] {
        case UInt8(ascii: "/"): break
        case UInt8(ascii: "*"):
            guard target.count == 1, head.method == .options else { throw .malformedTarget }
        default: try reduceAbsoluteForm(&head, target)
        }
        guard isAcceptable(head.bytes.slice(head.target)) else { throw .malformedTarget }
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
        // `http://host?query` means `/?query`, which the buffer does not contain. No client sends this.
        if end < target.count, target[end] == UInt8(ascii: "?") { throw .malformedTarget }
        let start = head.target.lowerBound
        head.authority = start + scheme..<start + end
        head.target = start + end..<head.target.upperBound
        head.hasEmptyPath = head.target.isEmpty
    }

    /// Whether the target, which is visible ASCII, has no fragment. Invalid percent-encoding is left to the handler: browsers
    /// send it unchanged from a typed address.
    private static func isAcceptable(_ target: UnsafeRawBufferPointer) -> Bool {
        guard let base = target.baseAddress else { return true }
        return memchr(base, Int32(UInt8(ascii: "#")), target.count) == nil
    }
}

/// The authority of a request: `host [ ":" port ]` (RFC 9110 section 7.2, RFC 3986 section 3.2), without user information.
enum Authority {
    static func isValid(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard let first = bytes.first else { return false }
        var end = 0
        if first == UInt8(ascii: "[") {
            guard let close = bytes.firstIndex(of: UInt8(ascii: "]")), isAddressLiteral(bytes.slice(1..<close)) else {
                return false
            }
            end = close + 1
        } else {
            while end < bytes.count, bytes[end] != UInt8(ascii: ":") {
                guard isNameByte(bytes[end]) else { return false }
                end += 1
            }
            if end == 0 { return false }
        }
        guard end < bytes.count else { return true }
        guard bytes[end] == UInt8(ascii: ":") else { return false }
        let port = bytes.slice(end + 1..<bytes.count)
        if port.isEmpty { return true }
        guard let number = port.decimal else { return false }
        return number <= 65535
    }

    /// Whether the bytes consist of characters allowed between the brackets of an IPv6 address.
    private static func isAddressLiteral(_ bytes: UnsafeRawBufferPointer) -> Bool {
        bytes.count >= 2
            && bytes.allSatisfy { $0.hexDigit != nil || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: ".") }
    }

    /// Whether the byte is unreserved, one of sub-delims, or the percent sign (`reg-name` in RFC 3986).
    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"), UInt8(ascii: "%"): true
        case UInt8(ascii: "!"), UInt8(ascii: "$"), UInt8(ascii: "&"), UInt8(ascii: "'"), UInt8(ascii: "("): true
        case UInt8(ascii: ")"), UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: ","), UInt8(ascii: ";"): true
        case UInt8(ascii: "="): true
        default: false
        }
    }
}
