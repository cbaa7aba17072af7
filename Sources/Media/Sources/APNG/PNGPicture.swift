internal import CMedia

/// The pixel coding that all pictures of a PNG share.
struct PNGHeader {
    /// The canvas, in pixels.
    let width: Int
    let height: Int
    /// Bit depth, colour type, compression, filter and interlace methods, as coded.
    private let coding: [UInt8]
    /// The palette; nil if pixels are not palette indices.
    private var palette: [UInt8]?
    /// The data of the chunk with transparent colours, as stored in the file.
    private var transparency: UnsafeRawBufferPointer?

    static let length = 13

    /// Reads `IHDR` (§11.2.1). libpng checks the coding.
    init?(_ chunk: PNGChunk) {
        guard chunk.type == PNGChunk.header, chunk.isSound, chunk.data.count == Self.length else { return nil }
        width = chunk.number(at: 0)
        height = chunk.number(at: 4)
        coding = Array(chunk.data[8...])
        // PNG limits a side to 31 bits.
        guard width > 0, height > 0, width < 1 << 31, height < 1 << 31 else { return nil }
    }

    /// Keeps a chunk with the palette (§11.2.2) or the transparent colours (§11.3.1.1). As in browsers, only the first chunk of
    /// a type counts. Chunks of another length or with a wrong checksum are ignored, and so are transparent colours before the
    /// palette.
    mutating func keep(_ chunk: PNGChunk) {
        guard chunk.isSound else { return }
        let length = chunk.data.count
        switch (chunk.type, coding[1]) {
        case (PNGChunk.palette, 3) where palette == nil && (3...768).contains(length):
            palette = Array(chunk.data.prefix(chunk.data.count / 3 * 3))
        case (PNGChunk.transparency, 0) where transparency == nil && length == 2,
            (PNGChunk.transparency, 2) where transparency == nil && length == 6,
            (PNGChunk.transparency, 3) where transparency == nil && palette != nil && (1...256).contains(length):
            transparency = chunk.data
        default: break
        }
    }

    /// The content of decoded words, for colour conversion.
    var words: ColorConversion.Words {
        switch coding[1] {
        case 0, 4: .greys
        case 3: .palette
        default: .colors
        }
    }

    mutating func convertPalette(_ conversion: borrowing ColorConversion) {
        guard let colors = palette else { return }
        var words = stride(from: 0, to: colors.count, by: 3).map { index -> UInt32 in
            let (red, green, blue) = (UInt32(colors[index]), UInt32(colors[index + 1]), UInt32(colors[index + 2]))
            return red | green << 8 | blue << 16
        }
        words.withUnsafeMutableBufferPointer { conversion.convert($0) }
        palette = words.flatMap { word -> [UInt8] in (0..<3).map { UInt8(truncatingIfNeeded: word >> (8 * $0)) } }
    }

    /// Whether a pixel may have alpha: the colour type includes it, or some colours are transparent.
    var hasAlpha: Bool { coding[1] & 4 != 0 || transparency != nil }

    /// Pixels in a byte of uncompressed rows; 1 if a pixel takes a byte or more.
    var pixelsPerByte: Int {
        switch (coding[0], coding[1]) {
        case (1, 0), (1, 3): 8
        case (2, 0), (2, 3): 4
        case (4, 0), (4, 3): 2
        default: 1
        }
    }

    /// The palette's colours and alpha for every possible index. Indices past its end get the last colour, as in Chromium.
    private var paletteEntries: (colors: [UInt8], alpha: [UInt8])? {
        guard let palette, [1, 2, 4, 8].contains(coding[0]) else { return nil }
        let count = min(1 << Int(coding[0]), palette.count / 3)
        let missing = (1 << Int(coding[0])) - count
        var colors = Array(palette.prefix(3 * count))
        let last = colors.suffix(3)
        for _ in 0..<missing { colors += last }
        var alpha: [UInt8] = []
        if let transparency {
            alpha = Array(transparency.prefix(count))
            alpha += Array(repeating: 255, count: count - alpha.count)
            alpha += Array(repeating: alpha[count - 1], count: missing)
        }
        return (colors, alpha)
    }

    /// Returns the head of a PNG with the same coding and another size. Its checksums are 0.
    func head(width: Int, height: Int) -> [UInt8] {
        var head = PNGChunks.signature
        func append(_ type: UInt32, _ data: some Collection<UInt8>) {
            head += Self.bytes(UInt32(data.count)) + Self.bytes(type) + data + Self.bytes(0)
        }
        append(PNGChunk.header, Self.bytes(UInt32(width)) + Self.bytes(UInt32(height)) + coding)
        if let (colors, alpha) = paletteEntries {
            append(PNGChunk.palette, colors)
            if !alpha.isEmpty { append(PNGChunk.transparency, alpha) }
        } else if let transparency {
            append(PNGChunk.transparency, transparency)
        }
        return head
    }

    static func bytes(_ number: UInt32) -> [UInt8] { withUnsafeBytes(of: number.bigEndian) { Array($0) } }
}

/// Decodes one picture of a PNG by passing its chunks to libpng as a file of their own.
///
/// Only chunks of the coding and of the pixels reach libpng, so profiles and texts are never decompressed.
enum PNGPicture {
    /// Decodes the picture. A wrong Adler-32 and any bytes after the data are ignored, as in browsers.
    ///
    /// - Parameters:
    ///   - parts: The compressed pixels.
    ///   - head: The result of ``PNGHeader/head(width:height:)``.
    ///   - target: Room for `width * height` words of R, G, B, A.
    /// - Returns: Whether all pixels could be decoded.
    /// - Throws: ``TranscodeError/outOfMemory``.
    static func decode(
        _ parts: [UnsafeRawBufferPointer], head: [UInt8], width: Int, height: Int, into target: UnsafeMutablePointer<UInt32>
    ) throws(TranscodeError) -> Bool {
        // libpng discards the row in whose last bytes zlib finds a wrong Adler-32, and Debian 13 builds it without the option
        // to ignore the error. If bytes arrive one at a time, all rows are complete before the Adler-32 is read.
        for length in [Int.max, 1]
        where try decode(parts, in: length, head: head, width: width, height: height, into: target) { return true }
        return false
    }

    /// - Parameter length: The maximum number of bytes to pass to libpng at a time.
    private static func decode(
        _ parts: [UnsafeRawBufferPointer], in length: Int, head: [UInt8], width: Int, height: Int,
        into target: UnsafeMutablePointer<UInt32>
    ) throws(TranscodeError) -> Bool {
        var reader = gifreel_png()
        // libpng keeps the address of the reader.
        return try withUnsafeMutablePointer(to: &reader) { reader throws(TranscodeError) in
            guard try check(gifreel_png_open(reader, target, UInt32(width), UInt32(height))) else { return false }
            defer { gifreel_png_close(reader) }
            let checksum = PNGHeader.bytes(0)
            var isFine = try push(reader, head)
            for part in parts where isFine && gifreel_png_is_complete(reader) == 0 {
                isFine = try push(reader, PNGHeader.bytes(UInt32(part.count)) + PNGHeader.bytes(PNGChunk.data))
                var rest = part[...]
                while isFine, !rest.isEmpty, gifreel_png_is_complete(reader) == 0 {
                    let next = UnsafeRawBufferPointer(rebasing: rest.prefix(length))
                    isFine = try check(gifreel_png_push(reader, next.baseAddress, next.count))
                    rest = rest.dropFirst(next.count)
                }
                if isFine, rest.isEmpty { isFine = try push(reader, checksum) }
            }
            return gifreel_png_is_complete(reader) != 0
        }
    }

    /// Returns whether the bytes could be decoded.
    private static func push(_ reader: UnsafeMutablePointer<gifreel_png>, _ bytes: [UInt8]) throws(TranscodeError) -> Bool {
        try check(bytes.withUnsafeBytes { gifreel_png_push(reader, $0.baseAddress, $0.count) })
    }

    private static func check(_ status: Int32) throws(TranscodeError) -> Bool {
        if status == gifreel_png_no_memory { throw .outOfMemory }
        return status == gifreel_png_fine
    }
}
