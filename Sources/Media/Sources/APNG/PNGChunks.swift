internal import CMedia

/// A chunk of a PNG (PNG third edition §5.3).
struct PNGChunk {
    /// The four letters of the type, the first in the highest byte.
    var type: UInt32
    /// The data, which lie between type and checksum.
    var data: UnsafeRawBufferPointer

    /// Whether the checksum of type and data matches.
    var isSound: Bool {
        guard let base = data.baseAddress else { return false }
        let sum = (base + data.count).loadUnaligned(as: UInt32.self).bigEndian
        return gifreel_crc32(0, base - 4, data.count + 4) == sum
    }

    static let header = type("IHDR")
    static let palette = type("PLTE")
    static let transparency = type("tRNS")
    static let codePoints = type("cICP")
    static let profile = type("iCCP")
    static let sRGB = type("sRGB")
    static let gamma = type("gAMA")
    static let chromaticities = type("cHRM")
    static let data = type("IDAT")
    static let end = type("IEND")
    static let animation = type("acTL")
    static let control = type("fcTL")
    static let frameData = type("fdAT")

    private static func type(_ name: StaticString) -> UInt32 {
        UnsafeRawPointer(name.utf8Start).loadUnaligned(as: UInt32.self).bigEndian
    }

    /// Returns the big-endian 32-bit number at an offset in the data, which must contain four bytes from there.
    func number(at offset: Int) -> Int {
        Int(data.loadUnaligned(fromByteOffset: offset, as: UInt32.self).bigEndian)
    }

    /// Returns the big-endian 16-bit number at an offset in the data.
    func shortNumber(at offset: Int) -> Int {
        Int(data.loadUnaligned(fromByteOffset: offset, as: UInt16.self).bigEndian)
    }
}

/// Reads the chunks of a PNG in memory one by one. The bytes must stay valid for the reader's lifetime.
struct PNGChunks {
    static let signature: [UInt8] = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]
    /// Bytes of a chunk apart from its data.
    static let frame = 12

    private let bytes: UnsafeRawBufferPointer
    /// The position of the next chunk.
    var position = signature.count

    init(_ bytes: UnsafeRawBufferPointer) {
        self.bytes = bytes
    }

    /// Returns the next chunk; nil if the file ends before the chunk does.
    mutating func next() -> PNGChunk? {
        guard bytes.count - position >= Self.frame else { return nil }
        let count = Int(bytes.loadUnaligned(fromByteOffset: position, as: UInt32.self).bigEndian)
        guard count <= bytes.count - position - Self.frame, let base = bytes.baseAddress else { return nil }
        let type = bytes.loadUnaligned(fromByteOffset: position + 4, as: UInt32.self).bigEndian
        defer { position += Self.frame + count }
        return PNGChunk(type: type, data: UnsafeRawBufferPointer(start: base + (position + 8), count: count))
    }
}
