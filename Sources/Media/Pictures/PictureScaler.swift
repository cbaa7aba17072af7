/// Scales a part of a canvas of the format ``PixelFormat/rgba`` to words of the same format.
///
/// Colours are multiplied by alpha before scaling and divided by it afterwards: the mean of a pixel and a transparent one has half
/// the alpha and the whole colour, without a dark or bright seam. Not thread-safe.
final class PictureScaler {
    private let source: Rectangle
    private let width: Int
    private let height: Int
    private let scaler: PlaneScaler
    private let plane: SamplePlane
    private let scaled: SamplePlane

    /// - Parameter source: The part of the canvas.
    init(_ source: Rectangle, to size: (width: Int, height: Int)) throws(TranscodeError) {
        self.source = source
        (width, height) = size
        scaler = try PlaneScaler(from: (source.width, source.height), to: size)
        plane = try SamplePlane(width: source.width, height: source.height)
        scaled = try SamplePlane(width: size.width, height: size.height)
    }

    /// Writes the picture: rows from top to bottom without padding.
    func scale(_ canvas: borrowing Canvas, into words: UnsafeMutablePointer<UInt32>) throws(TranscodeError) {
        words.update(repeating: 0, count: width * height)
        for shift in stride(from: UInt32(0), to: 32, by: 8) {
            for y in 0..<source.height {
                let pixels = canvas.pixels + (source.y + y) * canvas.width + source.x
                let row = plane.row(y)
                for x in 0..<source.width { row[x] = Self.multiplied(pixels[x], shift) }
            }
            try scaler.scale(plane, into: scaled.samples, stride: scaled.stride)
            for y in 0..<height {
                let row = scaled.row(y)
                let target = words + y * width
                for x in 0..<width { target[x] |= UInt32(row[x]) << shift }
            }
        }
        for index in 0..<width * height where words[index] < PixelFormat.opaque { words[index] = Self.straight(words[index]) }
    }

    /// A component times alpha; alpha itself.
    @inline(__always)
    private static func multiplied(_ word: UInt32, _ shift: UInt32) -> UInt8 {
        let value = word >> shift & 255
        // Most pixels are opaque or wholly 0.
        if word >= PixelFormat.opaque || shift == 24 { return UInt8(truncatingIfNeeded: value) }
        return UInt8(truncatingIfNeeded: (value &* (word >> 24) &+ 127) / 255)
    }

    /// Divides the colour by alpha.
    private static func straight(_ word: UInt32) -> UInt32 {
        let alpha = word >> 24
        if alpha == 0 { return 0 }
        var result = alpha << 24
        for shift in stride(from: UInt32(0), to: 24, by: 8) {
            result |= min(255, ((word >> shift & 255) * 255 + alpha / 2) / alpha) << shift
        }
        return result
    }
}
