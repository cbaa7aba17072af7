/// The header fields of a response, in order, encoded as they are sent.
///
/// Fields shared by many responses are encoded once: copying them costs a reference count, sending them a `memcpy`. The server
/// itself adds `Date`, `Content-Length`, `Transfer-Encoding`, `Connection` and `X-Request-Id`.
package struct HTTPHeaders: Sendable, ExpressibleByDictionaryLiteral, CustomStringConvertible {
    /// `Name: value` lines, each ending with CRLF.
    private(set) var encoded: [UInt8] = []
    /// The range of the `Cache-Status` value in `encoded`, for the access log; empty if absent.
    private(set) var cacheStatus = 0..<0
    /// The position of ``number`` in `encoded`; nil if no field has a number.
    private(set) var numberPosition: Int?
    /// The number in the last field appended with a number. Copies with different numbers share all other bytes.
    package var number = 0

    /// Creates an empty list of fields.
    package init() {}

    package init(dictionaryLiteral fields: (HTTPFieldName, String)...) {
        for (name, value) in fields { append(name, value) }
    }

    package var isEmpty: Bool { encoded.isEmpty }

    package var description: String { String(decoding: complete, as: UTF8.self) }

    /// All fields, including the number.
    var complete: [UInt8] {
        var fields = self
        fields.settleNumber()
        return fields.encoded
    }

    /// Merges the number into the encoded bytes.
    private mutating func settleNumber() {
        guard let position = numberPosition else { return }
        let digits = String(number).utf8
        encoded.insert(contentsOf: digits, at: position)
        if cacheStatus.lowerBound >= position {
            cacheStatus = cacheStatus.lowerBound + digits.count..<cacheStatus.upperBound + digits.count
        }
        numberPosition = nil
    }

    /// Appends a field.
    ///
    /// Control characters in `value` become spaces (RFC 9110 section 5.5), so that no value can break its line.
    package mutating func append(_ name: HTTPFieldName, _ value: String) {
        encoded.append(contentsOf: name.bytes)
        encoded.append(UInt8(ascii: ":"))
        encoded.append(UInt8(ascii: " "))
        let start = encoded.count
        for byte in value.utf8 { encoded.append(byte < 0x20 || byte == 0x7F ? 0x20 : byte) }
        if name.bytes.equalsIgnoringCase("cache-status") { cacheStatus = start..<encoded.count }
        encoded.append(13)
        encoded.append(10)
    }

    /// Appends a field whose value contains a nonnegative number. The number of the last such field can be changed.
    ///
    /// - Parameters:
    ///   - prefix: The part of the value before the number.
    ///   - suffix: The part of the value after the number.
    package mutating func append(_ name: HTTPFieldName, _ prefix: String, number: Int, _ suffix: String) {
        settleNumber()
        append(name, prefix)
        // Before the CRLF.
        let position = encoded.count - 2
        encoded.insert(contentsOf: suffix.utf8, at: position)
        (numberPosition, self.number) = (position, number)
    }

    /// Appends all fields of `other`.
    package mutating func append(_ other: HTTPHeaders) {
        if let position = other.numberPosition {
            settleNumber()
            (numberPosition, number) = (encoded.count + position, other.number)
        }
        if !other.cacheStatus.isEmpty {
            cacheStatus = other.cacheStatus.lowerBound + encoded.count..<other.cacheStatus.upperBound + encoded.count
        }
        encoded.append(contentsOf: other.encoded)
    }

    /// The value of the first field with this case-insensitive name. Searches line by line: not for hot paths.
    package subscript(_ name: HTTPFieldName) -> String? {
        complete.withUnsafeBytes { bytes in
            for line in bytes.split(separator: 10) {
                guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { continue }
                let field = UnsafeRawBufferPointer(rebasing: line[..<colon])
                guard field.equalsIgnoringCase(name.bytes) else { continue }
                return String(decoding: line[(colon + 2)..<(line.endIndex - 1)], as: UTF8.self)
            }
            return nil
        }
    }
}

/// The name of a header field. Only literals convert to it, so external data cannot become a name.
package struct HTTPFieldName: Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
    let literal: StaticString

    package init(stringLiteral literal: StaticString) {
        assert(literal.hasPointerRepresentation && literal.bytes.allSatisfy(\.isToken), "not a field name: \(literal)")
        self.literal = literal
    }

    package var description: String { literal.description }

    /// The name's bytes, valid for the lifetime of the process.
    var bytes: UnsafeRawBufferPointer { literal.bytes }
}

extension StaticString {
    /// The literal's UTF-8 bytes, valid for the lifetime of the process.
    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: utf8Start, count: utf8CodeUnitCount) }
}
