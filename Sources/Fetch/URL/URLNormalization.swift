internal import SystemIO

/// The normalization of paths and queries (RFC 3986 section 6.2.2).
enum URLNormalization {
    /// Decodes unreserved bytes, writes hexadecimal digits in upper case, encodes forbidden bytes and each `%` without two
    /// digits, and resolves dot segments.
    ///
    /// `%2e%2e` counts as `..`, because many origins decode a path before they resolve it.
    static func normalizedPath(_ path: String) -> String {
        removingDotSegments(normalizedSegments(path))
    }

    /// Normalizes a path like ``normalizedPath(_:)``, but keeps dot segments.
    static func normalizedSegments(_ path: String) -> String {
        let bytes = Array(path.utf8)
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        var index = 0
        while index < bytes.count {
            if let value = PercentEncoding.triplet(in: bytes, at: index) {
                if PercentEncoding.isUnreserved(value) {
                    result.append(value)
                } else {
                    PercentEncoding.appendTriplet(value, to: &result)
                }
                index += 3
            } else {
                if bytes[index] == UInt8(ascii: "%") {
                    // A literal `%` must not form a triplet with the bytes that are decoded after it.
                    PercentEncoding.appendTriplet(bytes[index], to: &result)
                } else {
                    append(bytes[index], to: &result)
                }
                index += 1
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// Writes the hexadecimal digits of percent-encoded bytes in upper case (section 6.2.2.1).
    static func withUpperCaseTriplets(_ text: String) -> String {
        var bytes = Array(text.utf8)
        for index in bytes.indices where PercentEncoding.triplet(in: bytes, at: index) != nil {
            for digit in index + 1...index + 2 where bytes[digit] >= UInt8(ascii: "a") { bytes[digit] -= 0x20 }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Encodes each byte that must not occur in a URL, which is all that a query needs: some origins sign its exact text.
    static func encodingForbiddenBytes(_ text: some Sequence<UInt8>) -> String {
        var result: [UInt8] = []
        for byte in text { append(byte, to: &result) }
        return String(decoding: result, as: UTF8.self)
    }

    /// Removes dot segments (RFC 3986 section 5.2.4) from a path that begins with a slash. Empty segments stay.
    private static func removingDotSegments(_ path: String) -> String {
        guard path.utf8.contains(UInt8(ascii: ".")) else { return path }
        // Works on bytes, because iterating over characters takes many times as long.
        var kept: [Substring.UTF8View] = []
        let segments = path.utf8.dropFirst().split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        for (index, segment) in segments.enumerated() {
            let isLast = index == segments.count - 1
            if segment.elementsEqual(".".utf8) {
                if isLast { kept.append(""[...].utf8) }
            } else if segment.elementsEqual("..".utf8) {
                if !kept.isEmpty { kept.removeLast() }
                if isLast { kept.append(""[...].utf8) }
            } else {
                kept.append(segment)
            }
        }
        var result: [UInt8] = []
        result.reserveCapacity(path.utf8.count)
        for segment in kept {
            result.append(UInt8(ascii: "/"))
            result += segment
        }
        return kept.isEmpty ? "/" : String(decoding: result, as: UTF8.self)
    }

    private static func append(_ byte: UInt8, to result: inout [UInt8]) {
        if isForbidden(byte) {
            PercentEncoding.appendTriplet(byte, to: &result)
        } else {
            result.append(byte)
        }
    }

    /// Whether RFC 3986 forbids the byte in paths and queries. Brackets are allowed, because browsers do not encode them.
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
