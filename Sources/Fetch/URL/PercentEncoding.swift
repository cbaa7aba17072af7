/// Percent-encoding (RFC 3986 section 2.1) of values, and the normalization of paths and queries (section 6.2.2).
package enum PercentEncoding {
    // MARK: Values

    /// Encodes all bytes except unreserved characters (RFC 3986 section 2.3), as the value of a query parameter needs it.
    package static func encode(_ text: String) -> String {
        var result: [UInt8] = []
        for byte in text.utf8 {
            if isUnreserved(byte) { result.append(byte) } else { appendTriplet(byte, to: &result) }
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// Decodes `text` strictly: nil if a `%` is not followed by two hexadecimal digits or the result is not UTF-8.
    ///
    /// A `+` stays a plus sign: a decoded value may be a URL, in which it is one.
    package static func decode(_ text: Substring) -> String? {
        guard text.utf8.contains(UInt8(ascii: "%")) else { return String(text) }
        var bytes: [UInt8] = []
        var rest = text.utf8.makeIterator()
        while let byte = rest.next() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.next().flatMap(hexadecimal), let low = rest.next().flatMap(hexadecimal) else { return nil }
            bytes.append(high << 4 | low)
        }
        return String(validating: bytes, as: UTF8.self)
    }

    /// Decodes `text` leniently: a `%` without two digits stands for itself.
    static func decodedBytes(_ text: String) -> [UInt8] {
        let bytes = Array(text.utf8)
        var result: [UInt8] = []
        var index = 0
        while index < bytes.count {
            if let value = triplet(in: bytes, at: index) {
                result.append(value)
                index += 3
            } else {
                result.append(bytes[index])
                index += 1
            }
        }
        return result
    }

    // MARK: Paths and queries

    /// Decodes unreserved bytes, writes hexadecimal digits in upper case, encodes forbidden bytes and each `%` without two digits,
    /// and resolves dot segments.
    ///
    /// `%2e%2e` counts as `..`, because many origins decode a path before they resolve it.
    static func normalizedPath(_ path: String) -> String {
        removingDotSegments(normalized(path, decodingUnreserved: true))
    }

    /// Encodes forbidden bytes and changes nothing else: some origins sign the exact text of a query.
    static func normalizedQuery(_ query: String) -> String {
        normalized(query, decodingUnreserved: false)
    }

    /// Encodes each byte that must not occur in a URL.
    static func encodingForbiddenBytes(_ text: some Sequence<UInt8>) -> String {
        var result: [UInt8] = []
        for byte in text { append(byte, to: &result) }
        return String(decoding: result, as: UTF8.self)
    }

    private static func normalized(_ text: String, decodingUnreserved: Bool) -> String {
        let bytes = Array(text.utf8)
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        var index = 0
        while index < bytes.count {
            guard decodingUnreserved, let value = triplet(in: bytes, at: index) else {
                if decodingUnreserved, bytes[index] == UInt8(ascii: "%") {
                    // It stands for itself, and must not form a triplet with the bytes that are decoded after it.
                    appendTriplet(bytes[index], to: &result)
                } else {
                    append(bytes[index], to: &result)
                }
                index += 1
                continue
            }
            if isUnreserved(value) {
                result.append(value)
            } else {
                appendTriplet(value, to: &result)
            }
            index += 3
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// Removes dot segments (RFC 3986 section 5.2.4) from a path that begins with a slash. Empty segments stay.
    private static func removingDotSegments(_ path: String) -> String {
        guard path.utf8.contains(UInt8(ascii: ".")) else { return path }
        var kept: [Substring] = []
        let segments = path.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
        for (index, segment) in segments.enumerated() {
            let isLast = index == segments.count - 1
            switch segment {
            case ".":
                if isLast { kept.append("") }
            case "..":
                if !kept.isEmpty { kept.removeLast() }
                if isLast { kept.append("") }
            default:
                kept.append(segment)
            }
        }
        return "/" + kept.joined(separator: "/")
    }

    private static func append(_ byte: UInt8, to result: inout [UInt8]) {
        if isForbidden(byte) {
            appendTriplet(byte, to: &result)
        } else {
            result.append(byte)
        }
    }

    private static func appendTriplet(_ value: UInt8, to result: inout [UInt8]) {
        result.append(UInt8(ascii: "%"))
        for digit in [value >> 4, value & 15] {
            result.append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "A") + digit - 10)
        }
    }

    private static func triplet(in bytes: [UInt8], at index: Int) -> UInt8? {
        guard bytes[index] == UInt8(ascii: "%"), index + 2 < bytes.count,
            let high = hexadecimal(bytes[index + 1]), let low = hexadecimal(bytes[index + 2])
        else { return nil }
        return high << 4 | low
    }

    private static func hexadecimal(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }

    /// Whether the byte is an unreserved character (RFC 3986 section 2.3).
    private static func isUnreserved(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"),
            UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"):
            true
        default: false
        }
    }

    /// Whether RFC 3986 forbids the byte in paths and queries. Brackets are excepted, because browsers do not encode them.
    private static func isForbidden(_ byte: UInt8) -> Bool {
        switch byte {
        case 0...0x20, 0x7f...: true
        case UInt8(ascii: "\""), UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "\\"), UInt8(ascii: "^"), UInt8(ascii: "`"),
            UInt8(ascii: "{"), UInt8(ascii: "|"), UInt8(ascii: "}"):
            true
        default: false
        }
    }
}
