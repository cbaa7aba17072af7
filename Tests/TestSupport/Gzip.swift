/// Bytes compressed as servers do.
package enum Gzip {
    /// `bytes` as stored blocks of a member of gzip (RFC 1952).
    package static func stored(_ bytes: [UInt8]) -> [UInt8] {
        var crc: UInt32 = 0xffff_ffff
        for byte in bytes {
            crc ^= UInt32(byte)
            for _ in 0..<8 { crc = crc & 1 == 1 ? crc >> 1 ^ 0xedb8_8320 : crc >> 1 }
        }
        return [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3] + blocks(bytes) + word(~crc) + word(UInt32(truncatingIfNeeded: bytes.count))
    }

    /// `bytes` in the format of zlib (RFC 1950), which HTTP calls deflate.
    package static func zlib(_ bytes: [UInt8]) -> [UInt8] {
        var (low, high): (UInt32, UInt32) = (1, 0)
        for byte in bytes {
            low = (low + UInt32(byte)) % 65_521
            high = (high + low) % 65_521
        }
        return [0x78, 0x01] + blocks(bytes) + word(high << 16 | low).reversed()
    }

    /// `bytes` as stored blocks (RFC 1951 section 3.2.4).
    package static func blocks(_ bytes: [UInt8]) -> [UInt8] {
        let starts = stride(from: 0, to: max(bytes.count, 1), by: 65_535)
        return starts.flatMap { start in
            let piece = bytes[start..<min(start + 65_535, bytes.count)]
            let isLast: UInt8 = start + 65_535 >= bytes.count ? 1 : 0
            let count = UInt16(piece.count)
            return [isLast, UInt8(count & 255), UInt8(count >> 8), UInt8(~count & 255), UInt8(~count >> 8)] + piece
        }
    }

    private static func word(_ value: UInt32) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
    }
}
