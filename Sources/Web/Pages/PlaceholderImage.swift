internal import Foundation
internal import Media

/// The blur of a picture as a PNG in a `data:` URL.
enum PlaceholderImage {
    /// The longer side in pixels. The browser enlarges it smoothly, and a ThumbHash has no more than seven cosines along a side.
    private static let side = 16

    /// - Parameters:
    ///   - width: The size of the picture, from which the image has its aspect ratio.
    static func url(_ hash: ThumbHash, width: Int, height: Int) -> String {
        let longer = max(width, height, 1)
        let size = (max(1, width * side / longer), max(1, height * side / longer))
        let pixels = hash.painted(width: size.0, height: size.1)
        return "data:image/png;base64," + Data(png(pixels, width: size.0, height: size.1)).base64EncodedString()
    }

    /// A PNG (W3C PNG, third edition) of pixels R, G, B, A without compression, because it is smaller than a block of deflate.
    static func png(_ pixels: [UInt8], width: Int, height: Int) -> [UInt8] {
        var rows: [UInt8] = []
        for y in 0..<height { rows += [0] + pixels[4 * width * y..<4 * width * (y + 1)] }
        // Eight bits per sample, colours with alpha, and the only methods there are.
        let header = bigEndian(UInt32(width)) + bigEndian(UInt32(height)) + [8, 6, 0, 0, 0]
        let signature: [UInt8] = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]
        return [signature, chunk("IHDR", header), chunk("IDAT", zlib(rows)), chunk("IEND", [])].flatMap { $0 }
    }

    private static func chunk(_ kind: String, _ contents: [UInt8]) -> [UInt8] {
        let body = Array(kind.utf8) + contents
        return bigEndian(UInt32(contents.count)) + body + bigEndian(cyclicRedundancyCheck(body))
    }

    /// One stored block of deflate in the format of zlib (RFC 1950, RFC 1951 section 3.2.4). It holds up to 65,535 bytes.
    private static func zlib(_ bytes: [UInt8]) -> [UInt8] {
        let count = UInt16(bytes.count)
        let head: [UInt8] = [0x78, 0x01, 0x01]
        let lengths: [UInt8] = [count, ~count].flatMap { [UInt8($0 & 255), UInt8($0 >> 8)] }
        return head + lengths + bytes + bigEndian(adler32(bytes))
    }

    private static func adler32(_ bytes: [UInt8]) -> UInt32 {
        var (first, second): (UInt32, UInt32) = (1, 0)
        for byte in bytes {
            first = (first + UInt32(byte)) % 65_521
            second = (second + first) % 65_521
        }
        return second << 16 | first
    }

    /// CRC-32 (PNG, annex D).
    private static func cyclicRedundancyCheck(_ bytes: [UInt8]) -> UInt32 {
        var value = UInt32.max
        for byte in bytes {
            value ^= UInt32(byte)
            for _ in 0..<8 { value = value >> 1 ^ (value & 1 == 1 ? 0xedb8_8320 : 0) }
        }
        return ~value
    }

    private static func bigEndian(_ number: UInt32) -> [UInt8] {
        [UInt8(number >> 24), UInt8(number >> 16 & 255), UInt8(number >> 8 & 255), UInt8(number & 255)]
    }
}
