/// The substitute that a page shows until a picture has loaded.
package struct Placeholder: Sendable, Equatable {
    /// The mean of the most frequent group of similar colours; white if no pixel is visible.
    package let dominantColor: RGB
    /// A thumbnail of the picture as WebP. A browser that enlarges it shows a blur.
    package let image: [UInt8]
    /// The picture as a ``BlurHash``.
    package let blurHash: String

    /// The longer side of ``image`` in pixels.
    private static let side = 16
    /// The longer side of the picture whose colours are counted.
    private static let countedSide = 64
    private static let quality = 50

    /// Computes the placeholder of a canvas in the format ``PixelFormat/rgba``.
    init(_ canvas: borrowing Canvas) throws(TranscodeError) {
        dominantColor = Self.dominantColor(try Self.picture(canvas, side: Self.countedSide))
        var file: [UInt8] = []
        try PosterEncoder.encodeWebP(try Self.picture(canvas, side: Self.side), quality: Self.quality) { file = Array($0) }
        guard Self.isImage(file) else { throw .failed(.encode, code: 0) }
        image = file
        blurHash = BlurHash.encode(canvas)
    }

    /// Returns the canvas, reduced to a box with sides of this length.
    private static func picture(_ canvas: borrowing Canvas, side: Int) throws(TranscodeError) -> StillPicture {
        let size = SizeOptions(width: side, height: side)
        let geometry = PictureGeometry(width: canvas.width, height: canvas.height, options: size)
        return try StillPicture(canvas, geometry, background: nil)
    }

    /// Groups colours by the upper four bits of their components. Ties go to the lowest red, then green, then blue.
    private static func dominantColor(_ picture: borrowing StillPicture) -> RGB {
        var groups = [(count: Int, red: Int, green: Int, blue: Int)](repeating: (0, 0, 0, 0), count: 1 << 12)
        for index in 0..<picture.width * picture.height {
            let word = picture.words[index]
            guard word >= 0x8000_0000 else { continue }
            let (red, green, blue) = (Int(word & 255), Int(word >> 8 & 255), Int(word >> 16 & 255))
            let group = (red & 0xf0) << 4 | green & 0xf0 | blue >> 4
            groups[group].count += 1
            groups[group].red += red
            groups[group].green += green
            groups[group].blue += blue
        }
        var largest = groups[0]
        for group in groups where group.count > largest.count { largest = group }
        guard largest.count > 0 else { return .white }
        func mean(_ sum: Int) -> UInt8 { UInt8((sum + largest.count / 2) / largest.count) }
        return RGB(red: mean(largest.red), green: mean(largest.green), blue: mean(largest.blue))
    }

    /// Whether bytes begin like a WebP and have the length that its header states (RFC 9649 section 2.4).
    package static func isImage(_ bytes: [UInt8]) -> Bool {
        guard (20...byteCount - headLength - BlurHash.maximumLength).contains(bytes.count), bytes.starts(with: "RIFF".utf8)
        else { return false }
        let length = bytes[4..<8].reversed().reduce(0) { $0 << 8 | Int($1) }
        return length == bytes.count - 8 && bytes[8..<12].elementsEqual("WEBP".utf8)
    }

    // MARK: In a worker's file

    /// The encoded length in a file.
    package static let byteCount = 1024
    private static let headLength = 6

    /// The encoding in a file: the colour, the lengths of the image (little-endian) and the BlurHash, both of them, then zeros.
    var bytes: [UInt8] {
        let head = [
            dominantColor.red, dominantColor.green, dominantColor.blue, UInt8(image.count & 255), UInt8(image.count >> 8),
            UInt8(blurHash.utf8.count),
        ]
        let used = head + image + blurHash.utf8
        return used + [UInt8](repeating: 0, count: Self.byteCount - used.count)
    }

    /// Reads the encoding in a file.
    ///
    /// - Returns: Nil if the bytes are not a placeholder.
    package init?(_ bytes: ArraySlice<UInt8>) {
        let bytes = Array(bytes)
        guard bytes.count == Self.byteCount else { return nil }
        let middle = Self.headLength + Int(bytes[3]) + Int(bytes[4]) << 8
        let end = middle + Int(bytes[5])
        guard end <= bytes.count, bytes[end...].allSatisfy({ $0 == 0 }) else { return nil }
        image = Array(bytes[Self.headLength..<middle])
        blurHash = String(decoding: bytes[middle..<end], as: UTF8.self)
        guard Self.isImage(image), BlurHash.isValid(blurHash) else { return nil }
        dominantColor = RGB(red: bytes[0], green: bytes[1], blue: bytes[2])
    }
}
