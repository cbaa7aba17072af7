/// Eight bytes that are examined together, at a quarter of the cost of examining each.
///
/// Marks are numbers in which the highest bit of each matching byte is set; `marks.trailingZeroBitCount / 8` is the number of
/// bytes before the first match, 8 without a match.
struct ByteWord {
    private static let ones: UInt64 = 0x0101_0101_0101_0101
    private static let highs: UInt64 = 0x8080_8080_8080_8080

    private let bits: UInt64

    /// The eight bytes from `offset` on; the first one becomes the lowest.
    @inline(__always)
    init(_ bytes: UnsafeRawBufferPointer, at offset: Int) {
        bits = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }

    /// Marks bytes below `limit`, which is at most 128. Correct up to the first mark; later marks may be wrong, because the
    /// subtraction borrows.
    @inline(__always)
    func below(_ limit: UInt64) -> UInt64 { (bits &- Self.ones &* limit) & ~bits & Self.highs }

    /// Marks bytes below `limit`, which is at most 128, and those from 127 (DEL) on. Correct up to the first mark; later marks may be
    /// wrong, because the sum carries and the difference borrows.
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

    /// Marks bytes that are neither an ASCII letter nor a hyphen, of which most field names consist. Every mark is correct.
    @inline(__always)
    var neitherLetterNorHyphen: UInt64 {
        // Seven bits per byte, so that no addition carries into the next byte.
        let plain = bits & ~Self.highs
        let folded = plain | (Self.ones &* 0x20)
        let letter = (folded &+ (Self.ones &* (0x80 - 0x61))) & ~(folded &+ (Self.ones &* (0x80 - 0x7B)))
        let hyphen = ~((plain ^ (Self.ones &* 0x2D)) &+ (Self.ones &* 0x7F))
        return ~((letter | hyphen) & ~bits) & Self.highs
    }

    /// The bytes with ASCII letters in lower case, as a number for comparisons.
    @inline(__always)
    var lowercased: UInt64 {
        let plain = bits & ~Self.highs
        let upper = (plain &+ (Self.ones &* (0x80 - 0x41))) & ~(plain &+ (Self.ones &* (0x80 - 0x5B))) & ~bits & Self.highs
        return bits | upper >> 2
    }

    /// Finds the first byte from `start` on that `marks` marks, sixteen bytes at a time.
    ///
    /// - Returns: Its position; without a mark, a position followed by fewer than eight bytes, which were not examined.
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
