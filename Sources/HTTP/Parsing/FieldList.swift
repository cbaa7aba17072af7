/// The elements of a field's value that is a list (RFC 9110 section 5.6.1): trimmed, in order, without empty ones.
///
/// This is the only parser of lists and parameters. It works on bytes and takes time in proportion to their number, because clients
/// choose what an event loop reads. Separators in quoted strings (section 5.6.4) do not separate. A quoted string that does not
/// end contains the rest of the value.
package struct FieldList: Sequence, IteratorProtocol {
    private let bytes: UnsafeRawBufferPointer
    private let separator: UInt8
    private let hasEscapes: Bool
    private var position = 0
    /// Whether the last element that was returned has a quoted string without an end.
    package private(set) var isUnterminated = false

    /// - Parameters:
    ///   - bytes: Must be valid as long as the elements are used.
    ///   - hasEscapes: Whether a backslash escapes the byte after it in a quoted string. Entity tags have no escapes (section 8.8.3).
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
            // The separator.
            position += 1
            if !element.isEmpty { return element }
        }
        return nil
    }

    /// The position of the next separator, or of the end.
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

/// A value with parameters (RFC 9110 section 5.6.6), such as `video/mp4;q=0.8`: a whole field or an element of a ``FieldList``.
package struct FieldElement {
    /// The bytes before the parameters.
    package let value: UnsafeRawBufferPointer
    private let parameters: UnsafeRawBufferPointer

    package init(_ bytes: UnsafeRawBufferPointer) {
        var end = 0
        // Nothing is compared with a quoted value, so its semicolons do not matter.
        while end < bytes.count, bytes[end] != UInt8(ascii: ";") { end += 1 }
        value = bytes.slice(0..<end).trimmed
        parameters = bytes.slice(Swift.min(end + 1, bytes.count)..<bytes.count)
    }

    /// A value that consists of parameters only, such as an element of `Forwarded` (RFC 7239 section 4).
    init(parameters: UnsafeRawBufferPointer) {
        value = parameters.slice(0..<0)
        self.parameters = parameters
    }

    /// The value of the first parameter with that name, with its quotes; nil without one.
    ///
    /// - Parameter name: Compared without regard to case.
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
    /// The content of a quoted string (RFC 9110 section 5.6.4), and any other value unchanged; nil for a quoted string that does not
    /// end, or does not end with the value.
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
