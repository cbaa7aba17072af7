/// Percent-encoding (RFC 3986 section 2.1).
package enum PercentEncoding {
    private static let digits = Array("0123456789ABCDEF".utf8)

    /// Encodes all bytes except unreserved characters (section 2.3), as query parameter values and the canonical URI of AWS
    /// Signature Version 4 require.
    ///
    /// - Parameter keepsSlashes: Whether to leave `/` unencoded, as in a path.
    package static func encode(_ text: String, keepsSlashes: Bool = false) -> String {
        encode(text.utf8, keepsSlashes: keepsSlashes)
    }

    /// Encodes bytes, which need not be UTF-8.
    package static func encode(_ bytes: some Collection<UInt8>, keepsSlashes: Bool = false) -> String {
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        for byte in bytes {
            if isUnreserved(byte) || (keepsSlashes && byte == UInt8(ascii: "/")) {
                result.append(byte)
            } else {
                appendTriplet(byte, to: &result)
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// Decodes `text` strictly: returns nil if a `%` is not followed by two hexadecimal digits or the result is not UTF-8.
    ///
    /// A `+` stays a plus sign, because a decoded value may be a URL, in which `+` is literal.
    package static func decode(_ text: Substring) -> String? {
        guard text.utf8.contains(UInt8(ascii: "%")) else { return String(text) }
        return decodedBytes(text).flatMap { String(validating: $0, as: UTF8.self) }
    }

    /// Decodes `text` into bytes, which need not be UTF-8; nil if a `%` is not followed by two hexadecimal digits.
    package static func decodedBytes(_ text: Substring) -> [UInt8]? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.utf8.count)
        var rest = text.utf8.makeIterator()
        while let byte = rest.next() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.next()?.hexDigit, let low = rest.next()?.hexDigit else { return nil }
            bytes.append(high << 4 | low)
        }
        return bytes
    }

    /// Whether two hexadecimal digits follow each `%`.
    package static func isValid(_ text: String) -> Bool { decodedBytes(text[...]) != nil }

    /// Returns the byte encoded by the triplet at `index`; nil if there is no triplet.
    package static func triplet(in bytes: [UInt8], at index: Int) -> UInt8? {
        guard bytes[index] == UInt8(ascii: "%"), index + 2 < bytes.count,
            let high = bytes[index + 1].hexDigit, let low = bytes[index + 2].hexDigit
        else { return nil }
        return high << 4 | low
    }

    /// Appends `%` and two uppercase digits.
    package static func appendTriplet(_ byte: UInt8, to result: inout [UInt8]) {
        result += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
    }

    /// Whether the byte is an unreserved character (RFC 3986 section 2.3).
    package static func isUnreserved(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"): true
        default: byte.isLetterOrDigit
        }
    }
}

extension UInt8 {
    /// Whether the byte is an ASCII letter or digit.
    package var isLetterOrDigit: Bool {
        switch self {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: false
        }
    }
}
