/// The elements of a list-valued field (RFC 9110 section 5.6.1): trimmed, in order, without empty elements.
///
/// This is the only parser of lists and parameters. It works on bytes in linear time, because clients choose what an event loop
/// parses. Separators in quoted strings (section 5.6.4) are literal. An unterminated quoted string extends to the end of the
/// value.
package struct FieldList: Sequence, IteratorProtocol {
    private let bytes: UnsafeRawBufferPointer
    private let separator: UInt8
    private let hasEscapes: Bool
    private var position = 0
    /// Whether the last returned element contains an unterminated quoted string.
    package private(set) var isUnterminated = false

    /// - Parameters:
    ///   - bytes: The value, which must stay valid while the elements are used.
    ///   - hasEscapes: Whether a backslash escapes the next byte in a quoted string. Entity tags have none (section 8.8.3).
    package init(
        _ bytes: UnsafeRawBufferPointer, separator: UInt8 = UInt8(ascii: ","), hasEscapes: Bool = true
    ) {
        self.bytes = bytes
        self.separator = separator
        self.hasEscapes = hasEscapes
    }

    package mutating func next() -> UnsafeRawBufferPointer? {
        while position < bytes.count {
            let start = position
            position = end(from: start)
            let element = bytes.slice(start..<position).trimmed
            // Skips the separator.
            position += 1
            if !element.isEmpty { return element }
        }
        return nil
    }

    /// Returns the position of the next separator, or of the end.
    private mutating func end(from start: Int) -> Int {
        var index = start
        var isQuoted = false
        while index < bytes.count {
            let byte = bytes[index]
            if byte == UInt8(ascii: "\"") {
                isQuoted.toggle()
            } else if isQuoted {
                if hasEscapes, byte == UInt8(ascii: "\\") { index += 1 }
            } else if byte == separator {
                return index
            }
            index += 1
        }
        isUnterminated = isQuoted
        return bytes.count
    }
}

/// A value with parameters (RFC 9110 section 5.6.6), such as `video/mp4;q=0.8`: a whole field or a ``FieldList`` element.
package struct FieldElement {
    /// The bytes before the parameters.
    package let value: UnsafeRawBufferPointer
    private let parameters: UnsafeRawBufferPointer

    package init(_ bytes: UnsafeRawBufferPointer) {
        var end = 0
        // Quoted values are never compared, so their semicolons do not matter.
        while end < bytes.count, bytes[end] != UInt8(ascii: ";") { end += 1 }
        value = bytes.slice(0..<end).trimmed
        parameters = bytes.slice(Swift.min(end + 1, bytes.count)..<bytes.count)
    }

    /// Creates an element of only parameters, such as an element of `Forwarded` (RFC 7239 section 4).
    init(parameters: UnsafeRawBufferPointer) {
        value = parameters.slice(0..<0)
        self.parameters = parameters
    }

    /// Returns the value of the first parameter with this name, including quotes; nil if absent.
    ///
    /// - Parameter name: The name, compared case-insensitively.
    package func parameter(_ name: StaticString) -> UnsafeRawBufferPointer? {
        for pair in FieldList(parameters, separator: UInt8(ascii: ";")) {
            guard let sign = pair.firstIndex(of: UInt8(ascii: "=")), pair.slice(0..<sign).trimmed.equalsIgnoringCase(name)
            else {
                continue
            }
            return pair.slice(sign + 1..<pair.count).trimmed
        }
        return nil
    }
}

extension UnsafeRawBufferPointer {
    /// The content of a quoted string (RFC 9110 section 5.6.4), or any other value unchanged; nil if a quoted string is
    /// unterminated or ends before the value does.
    package var unquoted: [UInt8]? {
        guard first == UInt8(ascii: "\"") else { return Array(self) }
        var content: [UInt8] = []
        var index = 1
        while index < count {
            switch self[index] {
            case UInt8(ascii: "\""): return index == count - 1 ? content : nil
            case UInt8(ascii: "\\"):
                index += 1
                if index < count { content.append(self[index]) }
            case let byte: content.append(byte)
            }
            index += 1
        }
        return nil
    }
}
