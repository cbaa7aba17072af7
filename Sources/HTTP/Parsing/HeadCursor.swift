/// A position in a request head, with steps that advance it. No step moves past the end.
struct HeadCursor {
    let bytes: UnsafeRawBufferPointer
    private(set) var position = 0

    init(_ bytes: UnsafeRawBufferPointer) {
        self.bytes = bytes
    }

    /// The byte at the current position; nil at the end.
    var next: UInt8? { position < bytes.count ? bytes[position] : nil }

    mutating func advance() { position += 1 }

    /// Skips token characters (RFC 9110 section 5.6.2) and returns their range.
    mutating func skipToken() -> Range<Int> {
        let start = position
        skipWords(until: \.neitherLetterNorHyphen)
        while position < bytes.count, bytes[position].isToken { position += 1 }
        return start..<position
    }

    mutating func skipVisible() -> Range<Int> {
        let start = position
        skipWords { $0.outsideASCII(from: 0x21) }
        while position < bytes.count, bytes[position].isVisible { position += 1 }
        return start..<position
    }

    /// Skips CRLF. Returns false if it is incomplete.
    ///
    /// - Parameter error: Thrown for other bytes, except for a line feed without a carriage return.
    mutating func skipLineEnd(orThrow error: HTTPProtocolError) throws(HTTPProtocolError) -> Bool {
        guard let first = next else { return false }
        guard first == 13 else { throw first == 10 ? .bareLineFeed : error }
        guard position + 1 < bytes.count else { return false }
        guard bytes[position + 1] == 10 else { throw error }
        position += 2
        return true
    }

    /// Skips `HTTP/` DIGIT `.` DIGIT (RFC 9112 section 2.3). Returns nil if it is incomplete.
    mutating func skipVersion() throws(HTTPProtocolError) -> (major: UInt8, minor: UInt8)? {
        if bytes.count - position >= 8, ByteWord(bytes, at: position).equals("HTTP/1.1") {
            position += 8
            return (1, 1)
        }
        let prefix = ("HTTP/" as StaticString).bytes
        let available = min(bytes.count - position, 8)
        for index in 0..<available {
            let byte = bytes[position + index]
            let fits =
                switch index {
                case 0..<5: byte == prefix[index]
                case 6: byte == UInt8(ascii: ".")
                default: byte.digit != nil
                }
            guard fits else { throw .malformedRequestLine }
        }
        guard available == 8 else { return nil }
        defer { position += 8 }
        return (bytes[position + 5] - 0x30, bytes[position + 7] - 0x30)
    }

    /// Skips a field value up to its CR and returns its range without surrounding blanks; nil if the line is incomplete.
    mutating func skipFieldValue() throws(HTTPProtocolError) -> Range<Int>? {
        while position < bytes.count, bytes[position].isBlank { position += 1 }
        let start = position
        while true {
            skipWords { $0.below(0x20) | $0.equal(to: 0x7F) }
            guard let byte = next else { return nil }
            if byte == 13 { break }
            // Tabs and bytes beyond ASCII are allowed (RFC 9110 section 5.5); other control characters are not.
            guard byte >= 0x20 && byte != 0x7F || byte == 9 else {
                throw byte == 10 ? .bareLineFeed : .malformedField
            }
            position += 1
        }
        var end = position
        while end > start, bytes[end - 1].isBlank { end -= 1 }
        return start..<end
    }

    /// Advances to the first byte marked by `marks`. May stop before the last seven bytes.
    @inline(__always)
    private mutating func skipWords(until marks: (ByteWord) -> UInt64) {
        position = ByteWord.firstMark(in: bytes, from: position, marks)
    }
}
