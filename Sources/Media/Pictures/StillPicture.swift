/// A picture in memory: bytes R, G, B, A in 32-bit words, rows from top to bottom without padding, straight alpha. Where alpha
/// is 0, so is the rest. Not thread-safe.
struct StillPicture: ~Copyable {
    private static let opaque: UInt32 = 0xff00_0000

    let width: Int
    let height: Int
    private let storage: HeapBuffer<UInt32>

    /// Crops and scales a canvas of the format ``PixelFormat/rgba``.
    ///
    /// - Parameter background: The colour that replaces transparent pixels before scaling; nil leaves them transparent.
    init(_ canvas: borrowing Canvas, _ geometry: PictureGeometry, background: RGB?) throws(TranscodeError) {
        if let background { Self.fill(canvas, PixelFormat.rgba.pack(background)) }
        let (width, height) = (geometry.width, geometry.height)
        let storage = try HeapBuffer<UInt32>(count: width * height)
        let source = geometry.source
        if source.width == width && source.height == height {
            for y in 0..<height {
                let pixels = canvas.pixels + (source.y + y) * canvas.width + source.x
                (storage.base + y * width).initialize(from: pixels, count: width)
            }
        } else {
            storage.base.initialize(repeating: 0, count: width * height)
            try Self.scale(canvas, source, to: (width, height), storage.base)
        }
        self.width = width
        self.height = height
        self.storage = storage
    }

    var words: UnsafeMutablePointer<UInt32> { storage.base }

    /// Whether a pixel is not fully opaque.
    var hasTransparency: Bool {
        for index in 0..<width * height where words[index] < Self.opaque { return true }
        return false
    }

    private static func fill(_ canvas: borrowing Canvas, _ word: UInt32) {
        for index in 0..<canvas.width * canvas.height where canvas.pixels[index] < opaque { canvas.pixels[index] = word }
    }

    /// Scales each component separately.
    ///
    /// A canvas' pixels are opaque or wholly 0, so its colours are their own products with alpha: the mean of a pixel and a
    /// transparent one has half the alpha and half the colour, and dividing by alpha gives the colour itself, without a dark
    /// seam.
    private static func scale(
        _ canvas: borrowing Canvas, _ source: Rectangle, to size: (width: Int, height: Int),
        _ words: UnsafeMutablePointer<UInt32>
    ) throws(TranscodeError) {
        let (width, height) = size
        let scaler = try PlaneScaler(from: (source.width, source.height), to: size)
        let plane = try SamplePlane(width: source.width, height: source.height)
        let scaled = try SamplePlane(width: width, height: height)
        for shift in stride(from: UInt32(0), to: 32, by: 8) {
            for y in 0..<source.height {
                let pixels = canvas.pixels + (source.y + y) * canvas.width + source.x
                let row = plane.row(y)
                for x in 0..<source.width { row[x] = UInt8(truncatingIfNeeded: pixels[x] >> shift) }
            }
            try scaler.scale(plane, into: scaled.samples, stride: scaled.stride)
            for y in 0..<height {
                let row = scaled.row(y)
                let target = words + y * width
                for x in 0..<width { target[x] |= UInt32(row[x]) << shift }
            }
        }
        for index in 0..<width * height where words[index] < opaque { words[index] = straight(words[index]) }
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
