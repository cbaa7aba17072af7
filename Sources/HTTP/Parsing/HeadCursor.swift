/// A place in a request head, and the steps by which it moves on. No step goes past the end.
struct HeadCursor {
    let bytes: UnsafeRawBufferPointer
    private(set) var position = 0

    init(_ bytes: UnsafeRawBufferPointer) {
        self.bytes = bytes
    }

    /// The byte at the cursor, nil at the end.
    var next: UInt8? { position < bytes.count ? bytes[position] : nil }

    mutating func advance() { position += 1 }

    /// Steps over all bytes of a class, and returns where they are.
    @inline(__always)
    mutating func skip(while belongs: (UInt8) -> Bool) -> Range<Int> {
        let start = position
        while position < bytes.count, belongs(bytes[position]) { position += 1 }
        return start..<position
    }

    /// Steps over CRLF. Returns false where it is incomplete.
    mutating func skipLineEnd() throws(HTTPProtocolError) -> Bool {
        guard let first = next else { return false }
        guard first == 13 else { throw first == 10 ? .bareLineFeed : .malformedField }
        guard position + 1 < bytes.count else { return false }
        guard bytes[position + 1] == 10 else { throw .malformedField }
        position += 2
        return true
    }

    /// Steps over `HTTP/` DIGIT `.` DIGIT (RFC 9112 section 2.3). Returns nil where it is incomplete.
    mutating func skipVersion() throws(HTTPProtocolError) -> (major: UInt8, minor: UInt8)? {
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

    /// Steps over a field's value up to its CR, and returns where it is, less the blanks around it. Returns nil where
    /// the line is incomplete.
    mutating func skipFieldValue() throws(HTTPProtocolError) -> Range<Int>? {
        _ = skip(while: \.isBlank)
        let start = position
        while true {
            skipPlainWords()
            guard let byte = next else { return nil }
            if byte == 13 { break }
            // Tabs and bytes past ASCII are allowed (RFC 9110 section 5.5), other control characters are not.
            guard byte >= 0x20 && byte != 0x7F || byte == 9 else {
                throw byte == 10 ? .bareLineFeed : .malformedField
            }
            position += 1
        }
        var end = position
        while end > start, bytes[end - 1].isBlank { end -= 1 }
        return start..<end
    }

    /// Steps over as many groups of eight bytes as have no control character, eight at a time: a quarter of the cost
    /// of looking at each byte of a browser's long fields.
    @inline(__always)
    private mutating func skipPlainWords() {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let highs: UInt64 = 0x8080_8080_8080_8080
        while position + 8 <= bytes.count {
            let word = bytes.loadUnaligned(fromByteOffset: position, as: UInt64.self)
            let below20 = (word &- ones &* 0x20) & ~word & highs
            let deleted = word ^ (ones &* 0x7F)
            let is7F = (deleted &- ones) & ~deleted & highs
            if below20 | is7F != 0 { return }
            position += 8
        }
    }
}
