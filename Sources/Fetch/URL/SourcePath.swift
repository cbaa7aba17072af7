internal import SystemIO

/// The path of a source in the forms that rules compare. Created once per URL, in time linear in its length.
struct SourcePath: Sendable {
    /// The path, decoded once. An encoded slash or percent sign stays encoded, so that it differs from the literal character.
    let exact: [UInt8]
    /// The path after every normalization that any origin may apply before it opens a file: `/m/a.gif` for
    /// `//M%255C%2e/a.gif;v=1`. Empty for the root.
    ///
    /// Percent-encoding is decoded repeatedly until none is left, as by a chain of proxies. Backslashes separate segments.
    /// Parameters (`;v=1`), empty segments, `.` segments, and dots and spaces at the end of a name (Windows) are removed.
    /// Letters are lowercased.
    let resolved: [UInt8]
    /// Whether a `..` or a control character remains. An origin may then resolve the path to any other path.
    let isAmbiguous: Bool

    /// - Parameter path: The path of a canonical URL, which begins with a slash.
    init(_ path: String) {
        let bytes = Array(path.utf8)
        exact = Self.decodedOnce(bytes)
        (resolved, isAmbiguous) = Self.resolve(Self.decodedFully(bytes))
    }

    /// Decodes everything but `%2F` and `%25`. A `%` without two hexadecimal digits is literal.
    static func decodedOnce(_ bytes: [UInt8]) -> [UInt8] {
        guard bytes.contains(UInt8(ascii: "%")) else { return bytes }
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        var index = 0
        while index < bytes.count {
            let value = PercentEncoding.triplet(in: bytes, at: index)
            if let value, value == UInt8(ascii: "/") || value == UInt8(ascii: "%") {
                PercentEncoding.appendTriplet(value, to: &result)
            } else {
                result.append(value ?? bytes[index])
            }
            index += value == nil ? 1 : 3
        }
        return result
    }

    /// Decodes in one pass until no escape is left: an escape that a decoded byte completes is decoded too. An overlong
    /// two-byte ASCII character (`%C0%AE`), which lenient UTF-8 decoders accept, becomes one byte.
    static func decodedFully(_ bytes: [UInt8]) -> [UInt8] {
        guard bytes.contains(where: { $0 == UInt8(ascii: "%") || $0 >= 0x80 }) else { return bytes }
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        for byte in bytes {
            result.append(byte)
            while let (value, length) = lastEscape(of: result) {
                result.replaceSubrange((result.count - length)..., with: [value])
            }
        }
        return result
    }

    /// Returns the value and the length of the escape at the end of `bytes`; nil if there is none.
    private static func lastEscape(of bytes: [UInt8]) -> (value: UInt8, length: Int)? {
        if bytes.count >= 3, let value = PercentEncoding.triplet(in: bytes, at: bytes.count - 3) { return (value, 3) }
        guard let last = bytes.last, (0x80...0xbf).contains(last), bytes.count >= 2, case let lead = bytes[bytes.count - 2],
            lead == 0xc0 || lead == 0xc1
        else { return nil }
        return ((lead & 1) << 6 | last & 0x3f, 2)
    }

    private static func resolve(_ bytes: [UInt8]) -> (path: [UInt8], isAmbiguous: Bool) {
        var isAmbiguous = bytes.contains { $0 < 0x20 || $0 == 0x7f }
        var path: [UInt8] = []
        path.reserveCapacity(bytes.count)
        for segment in bytes.split(whereSeparator: { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "\\") }) {
            // A proxy that decodes a question mark or a number sign ends the path there.
            let name = segment.prefix { !";?#".utf8.contains($0) }
            let end = name.lastIndex { $0 != UInt8(ascii: ".") && $0 != UInt8(ascii: " ") }
            guard let end else {
                if name.prefix(while: { $0 == UInt8(ascii: ".") }).count == 2 { isAmbiguous = true }
                continue
            }
            path.append(UInt8(ascii: "/"))
            path += name[...end].lazy.map(lowercased)
        }
        return (path, isAmbiguous)
    }

    static func lowercased(_ byte: UInt8) -> UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte + 0x20 : byte
    }
}
