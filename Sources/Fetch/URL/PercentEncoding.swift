/// The percent-encoding of paths and queries, brought to one form (RFC 3986 section 6.2.2).
enum PercentEncoding {
    /// A path with unreserved bytes decoded, hexadecimal digits in upper case, forbidden bytes and a `%` without two digits
    /// encoded, and dot segments resolved.
    ///
    /// `%2e%2e` counts as `..`: many origins decode first and resolve afterwards.
    static func normalisedPath(_ path: String) -> String {
        removingDotSegments(normalised(path, decodingUnreserved: true))
    }

    /// A query with forbidden bytes encoded and nothing else changed, since some origins sign the very text of it.
    static func normalisedQuery(_ query: String) -> String {
        normalised(query, decodingUnreserved: false)
    }

    /// `text` with each byte that may not stand in a URL encoded.
    static func encodingForbiddenBytes(_ text: some Sequence<UInt8>) -> String {
        var result: [UInt8] = []
        for byte in text {
            append(byte, to: &result)
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// The bytes that `text` stands for; a `%` without two digits stands for itself.
    static func decoded(_ text: String) -> [UInt8] {
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

    private static func normalised(_ text: String, decodingUnreserved: Bool) -> String {
        let bytes = Array(text.utf8)
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        var index = 0
        while index < bytes.count {
            guard decodingUnreserved, let value = triplet(in: bytes, at: index) else {
                if decodingUnreserved, bytes[index] == UInt8(ascii: "%") {
                    // It stands for itself, and must not begin a triplet together with what is decoded behind it.
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

    /// RFC 3986 section 5.2.4, for a path that begins with a slash. Empty segments stay.
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
        let digits = Array("0123456789ABCDEF".utf8)
        result.append(UInt8(ascii: "%"))
        result.append(digits[Int(value >> 4)])
        result.append(digits[Int(value & 15)])
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

    /// RFC 3986 section 2.3.
    private static func isUnreserved(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"),
            UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"):
            true
        default: false
        }
    }

    /// What RFC 3986 lets stand nowhere in a path or query; brackets excepted, which browsers send as they are.
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
