internal import CMedia
internal import Glibc

/// Encodes one picture as JPEG with libjpeg, as PNG with libpng or as WebP with libwebp.
enum PosterEncoder {
    /// The version that becomes part of an object's name. Change it with anything that changes the output bytes.
    static let version = "poster-8"

    /// The quality from which a JPEG has full chroma resolution.
    private static let fullChromaQuality = 90
    /// The size in bytes from which a JPEG is also encoded progressively, which shrinks most larger files and enlarges most
    /// smaller ones.
    private static let progressiveBytes = 6 << 10

    /// Encodes the picture, and calls `body` with the bytes of the file.
    ///
    /// - Parameters:
    ///   - format: A format of posters; any but JPEG and PNG is WebP.
    ///   - quality: 1…100; ignored for PNG.
    static func encode(
        _ picture: borrowing StillPicture, as format: OutputFormat, quality: Int,
        _ body: (UnsafeRawBufferPointer) throws(TranscodeError) -> Void
    ) throws(TranscodeError) {
        switch format {
        case .jpg: try encodeJPEG(picture, quality: quality, body)
        case .png: try encodePNG(picture, body)
        default: try encodeWebP(picture, quality: quality, body)
        }
    }

    private static func encodeJPEG(
        _ picture: borrowing StillPicture, quality: Int, _ body: (UnsafeRawBufferPointer) throws(TranscodeError) -> Void
    ) throws(TranscodeError) {
        var files: [UnsafeRawBufferPointer] = []
        defer { for file in files { free(UnsafeMutableRawPointer(mutating: file.baseAddress)) } }
        for isProgressive in [false, true] {
            if isProgressive && files[0].count < progressiveBytes { break }
            var bytes: UnsafeMutablePointer<UInt8>?
            var count: UInt = 0
            let status = gifreel_jpeg_encode(
                picture.words, UInt32(picture.width), UInt32(picture.height), Int32(PosterQuality.jpeg(quality)),
                quality < fullChromaQuality ? 1 : 0, isProgressive ? 1 : 0, &bytes, &count)
            files.append(UnsafeRawBufferPointer(start: bytes, count: Int(count)))
            if Int(status) == gifreel_jpeg_no_memory { throw .outOfMemory }
            guard Int(status) == gifreel_jpeg_fine else { throw .failed(.encode, code: status) }
        }
        guard let smallest = files.min(by: { $0.count < $1.count }) else { return }
        try body(smallest)
    }

    private static func encodePNG(
        _ picture: borrowing StillPicture, _ body: (UnsafeRawBufferPointer) throws(TranscodeError) -> Void
    ) throws(TranscodeError) {
        var file = gifreel_png_file()
        defer { free(file.bytes) }
        let (width, height) = (UInt32(picture.width), UInt32(picture.height))
        let status: Int32
        if let palette = IndexedPalette(picture) {
            let indices = try HeapBuffer<UInt8>(count: picture.width * picture.height)
            palette.index(picture, into: indices.base)
            status = gifreel_png_encode(
                indices.base, width, height, 1, palette.colors, Int32(palette.colors.count), &file)
        } else {
            status = gifreel_png_encode(picture.words, width, height, picture.hasTransparency ? 1 : 0, nil, 0, &file)
        }
        if Int(status) == gifreel_png_no_memory { throw .outOfMemory }
        guard Int(status) == gifreel_png_fine else { throw .failed(.encode, code: status) }
        try body(UnsafeRawBufferPointer(start: file.bytes, count: file.count))
    }

    static func encodeWebP(
        _ picture: borrowing StillPicture, quality: Int, _ body: (UnsafeRawBufferPointer) throws(TranscodeError) -> Void
    ) throws(TranscodeError) {
        try WebPCoding.check(width: picture.width, height: picture.height)
        let count = picture.width * picture.height
        let words = try HeapBuffer<UInt32>(count: count)
        for index in 0..<count { words.base[index] = WebPCoding.swapped(picture.words[index]) }
        var writer = WebPMemoryWriter()
        WebPMemoryWriterInit(&writer)
        defer { WebPMemoryWriterClear(&writer) }
        let (width, height) = (Int32(picture.width), Int32(picture.height))
        try WebPCoding.check(
            gifreel_webp_encode(words.base, width, height, Float(PosterQuality.webp(quality)), 0, &writer))
        try body(UnsafeRawBufferPointer(start: writer.mem, count: writer.size))
    }
}

/// The code shared by still and animated WebPs.
enum WebPCoding {
    /// The longest side (RFC 9649 §2.7.1).
    private static let longestSide = 16_383

    static func check(width: Int, height: Int) throws(TranscodeError) {
        guard max(width, height) <= longestSide else {
            throw .tooLarge(.side, value: max(width, height), maximum: longestSide)
        }
    }

    static func check(_ status: WebPEncodingError) throws(TranscodeError) {
        switch status {
        case VP8_ENC_OK: return
        case VP8_ENC_ERROR_OUT_OF_MEMORY, VP8_ENC_ERROR_BITSTREAM_OUT_OF_MEMORY, VP8_ENC_ERROR_BAD_WRITE: throw .outOfMemory
        default: throw .failed(.encode, code: Int32(status.rawValue))
        }
    }

    /// Converts R, G, B, A to B, G, R, A, the order that libwebp expects.
    @inline(__always)
    static func swapped(_ word: UInt32) -> UInt32 {
        word & 0xff00_ff00 | word >> 16 & 0xff | (word & 0xff) << 16
    }
}

/// Maps the option `quality`, 1…100, to the encoders' qualities: two straight lines that meet at the default, which looks as
/// good as the video's.
enum PosterQuality {
    /// JPEG's quality on the scale of the Independent JPEG Group: 60 ↦ 79, 1 ↦ 10, 100 ↦ 98.
    static func jpeg(_ quality: Int) -> Int { line(quality, lowest: 10, middle: 79, highest: 98) }

    /// WebP's quality: 60 ↦ 80, 1 ↦ 5, 100 ↦ 100.
    static func webp(_ quality: Int) -> Int { line(quality, lowest: 5, middle: 80, highest: 100) }

    private static func line(_ quality: Int, lowest: Int, middle: Int, highest: Int) -> Int {
        quality <= 60
            ? lowest + (middle - lowest) * (quality - 1) / 59
            : middle + (highest - middle) * (quality - 60) / 40
    }
}
