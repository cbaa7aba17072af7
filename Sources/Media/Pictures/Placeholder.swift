/// What a page shows in place of a picture until that has loaded.
package struct Placeholder: Sendable, Equatable {
    /// The mean of the most frequent group of similar colours; white if no pixel is visible.
    package let dominantColor: RGB
    package let thumbHash: ThumbHash

    package init(dominantColor: RGB, thumbHash: ThumbHash) {
        self.dominantColor = dominantColor
        self.thumbHash = thumbHash
    }

    /// Describes a canvas of the format ``PixelFormat/rgba``.
    init(_ canvas: borrowing Canvas) throws(TranscodeError) {
        let size = SizeOptions(width: ThumbHash.side, height: ThumbHash.side)
        let geometry = PictureGeometry(width: canvas.width, height: canvas.height, options: size)
        let picture = try StillPicture(canvas, geometry, background: nil)
        thumbHash = ThumbHash(picture)
        dominantColor = Self.dominantColor(picture)
    }

    /// The colours are grouped by the upper four bits of their components. Of equally frequent groups the darkest one counts.
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

    // MARK: In a worker's file

    /// The length of the form in a file.
    package static let byteCount = 32

    /// The form in a file: the colour, the length of the hash, and the hash, padded with zeros.
    var bytes: [UInt8] {
        let hash = thumbHash.bytes
        let head = [dominantColor.red, dominantColor.green, dominantColor.blue, UInt8(hash.count)]
        return head + hash + [UInt8](repeating: 0, count: Self.byteCount - head.count - hash.count)
    }

    /// Reads the form in a file.
    ///
    /// - Returns: Nil for bytes that are no placeholder.
    package init?(_ bytes: ArraySlice<UInt8>) {
        let bytes = Array(bytes)
        guard bytes.count == Self.byteCount, Int(bytes[3]) <= Self.byteCount - 4,
            let hash = ThumbHash(Array(bytes[4..<4 + Int(bytes[3])])), bytes[(4 + hash.bytes.count)...].allSatisfy({ $0 == 0 })
        else { return nil }
        dominantColor = RGB(red: bytes[0], green: bytes[1], blue: bytes[2])
        thumbHash = hash
    }
}
