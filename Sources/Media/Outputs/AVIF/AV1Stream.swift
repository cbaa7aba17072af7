/// The properties of an AV1 stream that a container needs, read from its sequence header (AV1 bitstream specification §5.5).
struct AV1Stream: Equatable {
    private static let sequenceHeader = 1
    private static let temporalDelimiter = 2

    let profile: Int
    let level: Int
    let tier: Int
    let isMonochrome: Bool

    /// Reads the header of the first picture of a stream.
    ///
    /// - Parameter isMonochrome: Whether the encoder received only luma.
    /// - Returns: Nil if the picture does not begin with a sequence header.
    init?(_ picture: [UInt8], isMonochrome: Bool) {
        guard let unit = AV1Stream.unit(picture[...]), unit.type == Self.sequenceHeader else { return nil }
        var bits = BitReader(unit.contents)
        profile = bits.read(3)
        bits.skip(1)
        if bits.read(1) == 1 {
            (level, tier) = (bits.read(5), 0)
        } else {
            if bits.read(1) == 1 { Self.skipTiming(&bits) }
            bits.skip(1 + 5 + 12)
            level = bits.read(5)
            tier = level > 7 ? bits.read(1) : 0
        }
        guard !bits.isExhausted else { return nil }
        self.isMonochrome = isMonochrome
    }

    /// Timing and decoder model (§5.5.3, §5.5.4).
    private static func skipTiming(_ bits: inout BitReader) {
        bits.skip(32 + 32)
        if bits.read(1) == 1 {
            var zeros = 0
            while bits.read(1) == 0 && !bits.isExhausted { zeros += 1 }
            bits.skip(zeros)
        }
        if bits.read(1) == 1 { bits.skip(5 + 32 + 5 + 5) }
    }

    /// Returns a picture without its temporal delimiters, which containers omit (AV1 in ISO-BMFF §2.4).
    static func withoutDelimiters(_ picture: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        var rest = picture
        while let unit = unit(ArraySlice(rest.prefix(16))), unit.type == temporalDelimiter {
            rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(unit.length))
        }
        return rest
    }

    /// Reads the unit (OBU) at the front of bytes (§5.3): its type, the available part of its contents, and its length.
    private static func unit(_ bytes: ArraySlice<UInt8>) -> (type: Int, contents: ArraySlice<UInt8>, length: Int)? {
        guard let first = bytes.first, first & 0x82 == 0x02 else { return nil }
        var rest = bytes.dropFirst(first & 0x04 != 0 ? 2 : 1)
        var size = 0
        for shift in stride(from: 0, to: 56, by: 7) {
            guard let byte = rest.popFirst() else { return nil }
            size |= Int(byte & 0x7f) << shift
            if byte & 0x80 == 0 { break }
        }
        return (Int(first >> 3) & 15, rest.prefix(size), bytes.count - rest.count + size)
    }
}

/// Reads bits, most significant first. Returns zeros past the end.
private struct BitReader {
    private let bytes: ArraySlice<UInt8>
    private var position = 0

    init(_ bytes: ArraySlice<UInt8>) {
        self.bytes = bytes
    }

    var isExhausted: Bool { position > 8 * bytes.count }

    mutating func skip(_ count: Int) { position += count }

    mutating func read(_ count: Int) -> Int {
        var value = 0
        for _ in 0..<count {
            let byte = position / 8 < bytes.count ? bytes[bytes.startIndex + position / 8] : 0
            value = value << 1 | Int(byte >> (7 - UInt8(position % 8)) & 1)
            position += 1
        }
        return value
    }
}
