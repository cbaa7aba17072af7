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

    /// What lies between the brackets of an IPv6 address or a later form: only its alphabet is checked.
    private static func isAddressLiteral(_ bytes: UnsafeRawBufferPointer) -> Bool {
        bytes.count >= 2
            && bytes.allSatisfy { $0.hexDigit != nil || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: ".") }
    }

    /// unreserved, sub-delims or the percent sign of RFC 3986's `reg-name`.
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
