internal import Glibc

/// Comparisons and slices of raw bytes by the rules of HTTP: ASCII, and case-insensitive for names and tokens.
extension UnsafeRawBufferPointer {
    /// Whether these bytes equal `other`.
    package func equals(_ other: UnsafeRawBufferPointer) -> Bool {
        guard count == other.count else { return false }
        guard let base = baseAddress, let otherBase = other.baseAddress else { return true }
        return memcmp(base, otherBase, count) == 0
    }

    /// Whether these bytes equal `other`.
    package func equals(_ other: StaticString) -> Bool { equals(other.bytes) }

    /// Whether these bytes equal `other`, ignoring the case of ASCII letters.
    package func equalsIgnoringCase(_ other: UnsafeRawBufferPointer) -> Bool {
        guard count == other.count else { return false }
        guard count >= 8 else {
            for index in 0..<count where self[index].lowercased != other[index].lowercased { return false }
            return true
        }
        var index = 0
        while true {
            if ByteWord(self, at: index).lowercased != ByteWord(other, at: index).lowercased { return false }
            if index == count - 8 { return true }
            // The last word may overlap the previous one.
            index = Swift.min(index + 8, count - 8)
        }
    }

    /// Whether these bytes equal `other`, ignoring the case of ASCII letters.
    package func equalsIgnoringCase(_ other: StaticString) -> Bool { equalsIgnoringCase(other.bytes) }

    /// Returns the bytes in `range` as a buffer whose indices start at 0.
    package func slice(_ range: Range<Int>) -> UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: self[range]) }

    /// The bytes without leading and trailing spaces and tabs (OWS, RFC 9110 section 5.6.3).
    package var trimmed: UnsafeRawBufferPointer {
        var start = 0
        var end = count
        while start < end, self[start].isBlank { start += 1 }
        while end > start, self[end - 1].isBlank { end -= 1 }
        return slice(start..<end)
    }

    /// The bytes parsed as a decimal number; nil if empty, if there are other characters, or if the number overflows `Int`.
    package var decimal: Int? {
        guard !isEmpty, count <= 19 else { return nil }
        var value = 0
        for byte in self {
            guard let digit = byte.digit else { return nil }
            let (scaled, overflowed) = value.multipliedReportingOverflow(by: 10)
            let (sum, carried) = scaled.addingReportingOverflow(digit)
            if overflowed || carried { return nil }
            value = sum
        }
        return value
    }
}

/// The character classes of HTTP's grammar.
extension UInt8 {
    /// Whether the byte is a `tchar` (RFC 9110 section 5.6.2), as in methods and field names.
    var isToken: Bool {
        // One bit per ASCII character.
        let bits: UInt64 = self < 64 ? 0x03FF_6CFA_0000_0000 : 0x57FF_FFFF_C7FF_FFFE
        return self < 128 && bits & (1 << UInt64(self & 63)) != 0
    }

    var isVisible: Bool { self > 0x20 && self < 0x7F }

    /// Whether the byte is a space or a tab (OWS, RFC 9110 section 5.6.3).
    var isBlank: Bool { self == 0x20 || self == 0x09 }

    var digit: Int? { self >= 0x30 && self <= 0x39 ? Int(self) - 0x30 : nil }

    /// The lowercase form of an ASCII letter; any other byte unchanged.
    var lowercased: UInt8 { self >= 0x41 && self <= 0x5A ? self | 0x20 : self }
}

/// Eight bytes that are examined together, at a quarter of the cost of examining each byte.
///
/// A mark is the highest bit of a matching byte; `marks.trailingZeroBitCount / 8` is the number of bytes before the first
/// match, 8 if there is none.
struct ByteWord {
    private static let ones: UInt64 = 0x0101_0101_0101_0101
    private static let highs: UInt64 = 0x8080_8080_8080_8080

    private let bits: UInt64

    /// Loads eight bytes from `offset`; the first byte becomes the lowest.
    @inline(__always)
    init(_ bytes: UnsafeRawBufferPointer, at offset: Int) {
        bits = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }

    /// Marks bytes below `limit`, which is at most 128. Correct up to the first mark; later marks may be wrong, because the
    /// subtraction borrows.
    @inline(__always)
    func below(_ limit: UInt64) -> UInt64 { (bits &- Self.ones &* limit) & ~bits & Self.highs }

    /// Marks bytes below `limit`, which is at most 128, and bytes from 127 (DEL). Correct up to the first mark; later marks may
    /// be wrong, because the sum carries and the difference borrows.
    @inline(__always)
    func outsideASCII(from limit: UInt64) -> UInt64 {
        ((bits &+ Self.ones) | (bits &- Self.ones &* limit) | bits) & Self.highs
    }

    /// Marks bytes equal to `byte`. Correct up to the first mark, like ``below(_:)``.
    @inline(__always)
    func equal(to byte: UInt8) -> UInt64 {
        let difference = bits ^ (Self.ones &* UInt64(byte))
        return (difference &- Self.ones) & ~difference & Self.highs
    }

    /// Marks bytes that are neither ASCII letters nor hyphens; most field names have none. Every mark is correct.
    @inline(__always)
    var neitherLetterNorHyphen: UInt64 {
        // Seven bits per byte, so that no addition carries into the next byte.
        let plain = bits & ~Self.highs
        let folded = plain | (Self.ones &* 0x20)
        let fromA: UInt64 = folded &+ Self.ones &* (0x80 - 0x61)
        let beyondZ: UInt64 = folded &+ Self.ones &* (0x80 - 0x7B)
        let letter = fromA & ~beyondZ
        let noHyphen: UInt64 = (plain ^ Self.ones &* 0x2D) &+ Self.ones &* 0x7F
        return ~((letter | ~noHyphen) & ~bits) & Self.highs
    }

    /// The bytes with ASCII letters lowercased, as a number for comparisons.
    @inline(__always)
    var lowercased: UInt64 {
        let plain = bits & ~Self.highs
        let fromA: UInt64 = plain &+ Self.ones &* (0x80 - 0x41)
        let beyondZ: UInt64 = plain &+ Self.ones &* (0x80 - 0x5B)
        let upper = fromA & ~beyondZ & ~bits & Self.highs
        return bits | upper >> 2
    }

    /// Finds the first byte from `start` that `marks` marks, sixteen bytes at a time.
    ///
    /// - Returns: The mark's position; without a mark, a position followed by fewer than eight bytes, which were not examined.
    @inline(__always)
    static func firstMark(in bytes: UnsafeRawBufferPointer, from start: Int, _ marks: (ByteWord) -> UInt64) -> Int {
        var position = start
        while position + 16 <= bytes.count {
            let first = marks(ByteWord(bytes, at: position))
            let second = marks(ByteWord(bytes, at: position + 8))
            if first != 0 { return position + first.trailingZeroBitCount / 8 }
            if second != 0 { return position + 8 + second.trailingZeroBitCount / 8 }
            position += 16
        }
        guard position + 8 <= bytes.count else { return position }
        return position + marks(ByteWord(bytes, at: position)).trailingZeroBitCount / 8
    }

    /// Whether the bytes equal the eight bytes of `text`.
    @inline(__always)
    func equals(_ text: StaticString) -> Bool { bits == ByteWord(text.bytes, at: 0).bits }
}
