/// Scales part of a picture of RGBA words (R in the lowest byte) with straight alpha.
///
/// Multiplies colours by alpha before scaling and divides by it afterwards. The mean of a pixel and a transparent pixel thus
/// has half the alpha and the full colour, without a dark or bright seam. The products have 16 bits, so that a low alpha leaves
/// the colour unchanged. Not thread-safe.
final class PictureScaler {
    private static let opaque: UInt32 = 0xff00_0000

    private let source: Rectangle
    private let width: Int
    private let height: Int
    private let isOpaque: Bool
    private let scaler: PlaneScaler
    private let plane: SamplePlane
    private let scaled: SamplePlane
    /// The scaled alpha, in the form that ``load(_:stride:_:)`` writes; empty for opaque pictures.
    private let alpha: SamplePlane

    /// - Parameters:
    ///   - source: The part of the picture.
    ///   - isOpaque: Whether all its pixels are opaque in every call.
    init(_ source: Rectangle, to size: (width: Int, height: Int), isOpaque: Bool) throws(TranscodeError) {
        self.source = source
        self.isOpaque = isOpaque
        (width, height) = size
        let bytes = isOpaque ? 1 : 2
        scaler = try PlaneScaler(from: (source.width, source.height), to: size, bytes: bytes)
        plane = try SamplePlane(width: source.width * bytes, height: source.height)
        scaled = try SamplePlane(width: size.width * bytes, height: size.height)
        alpha = try SamplePlane(width: isOpaque ? 0 : size.width * bytes, height: isOpaque ? 0 : size.height)
    }

    /// Writes the scaled picture, rows from top to bottom.
    ///
    /// - Parameters:
    ///   - length: Words from one row of the picture to the next.
    ///   - pitch: Words from one row of the result to the next.
    func scale(_ picture: UnsafePointer<UInt32>, stride length: Int, into words: UnsafeMutablePointer<UInt32>, pitch: Int)
        throws(TranscodeError)
    {
        if isOpaque {
            for y in 0..<height { (words + y * pitch).update(repeating: Self.opaque, count: width) }
            for shift in stride(from: UInt32(0), to: 24, by: 8) {
                try scaleOpaque(picture, stride: length, shift, into: words, pitch: pitch)
            }
            return
        }
        load(picture, stride: length) { ($0 >> 24) &* 255 }
        try scaler.scale(plane, into: alpha.samples, stride: alpha.stride)
        for y in 0..<height {
            let (row, target) = (Self.wide(alpha.row(y)), words + y * pitch)
            for x in 0..<width { target[x] = min(255, (UInt32(row[x]) &* 4 &+ 382) / 765) << 24 }
        }
        for shift in stride(from: UInt32(0), to: 24, by: 8) {
            load(picture, stride: length) { ($0 >> shift & 255) &* ($0 >> 24) }
            try scaler.scale(plane, into: scaled.samples, stride: scaled.stride)
            for y in 0..<height {
                let (row, alpha, target) = (Self.wide(scaled.row(y)), Self.wide(alpha.row(y)), words + y * pitch)
                for x in 0..<width where target[x] > 0 {
                    let divisor = UInt32(alpha[x])
                    target[x] |= min(255, (UInt32(row[x]) &* 255 &+ divisor / 2) / divisor) << shift
                }
            }
        }
    }

    /// Scales a component of opaque pixels.
    private func scaleOpaque(
        _ picture: UnsafePointer<UInt32>, stride length: Int, _ shift: UInt32, into words: UnsafeMutablePointer<UInt32>,
        pitch: Int
    ) throws(TranscodeError) {
        for y in 0..<source.height {
            let pixels = picture + (source.y + y) * length + source.x
            let row = plane.row(y)
            for x in 0..<source.width { row[x] = UInt8(truncatingIfNeeded: pixels[x] >> shift) }
        }
        try scaler.scale(plane, into: scaled.samples, stride: scaled.stride)
        for y in 0..<height {
            let (row, target) = (scaled.row(y), words + y * pitch)
            for x in 0..<width { target[x] |= UInt32(row[x]) << shift }
        }
    }

    /// Fills the plane with three quarters of each pixel's `number`, at most 65,025. The rest is headroom for the filter's
    /// overshoot.
    @inline(__always)
    private func load(_ picture: UnsafePointer<UInt32>, stride length: Int, _ number: (UInt32) -> UInt32) {
        for y in 0..<source.height {
            let pixels = picture + (source.y + y) * length + source.x
            let row = Self.wide(plane.row(y))
            for x in 0..<source.width { row[x] = UInt16(truncatingIfNeeded: (number(pixels[x]) &* 3 &+ 2) >> 2) }
        }
    }

    /// A row of a plane of 16 bits.
    private static func wide(_ row: UnsafeMutablePointer<UInt8>) -> UnsafeMutablePointer<UInt16> {
        UnsafeMutableRawPointer(row).assumingMemoryBound(to: UInt16.self)
    }
}
