/// A picture in memory: bytes R, G, B, A in 32-bit words, rows from top to bottom without padding, straight alpha. Pixels with
/// an alpha of 0 are 0 as a whole. Not thread-safe.
struct StillPicture: ~Copyable {
    let width: Int
    let height: Int
    private let storage: HeapBuffer<UInt32>

    /// Crops and scales a canvas in the format ``PixelFormat/rgba``.
    ///
    /// - Parameter background: The colour drawn under transparent pixels before scaling, and that of a margin; nil leaves both
    ///   transparent.
    init(_ canvas: borrowing Canvas, _ geometry: PictureGeometry, background: RGB?) throws(TranscodeError) {
        if let background { Self.fill(canvas, PixelFormat.rgba.pack(background)) }
        let (width, height) = (geometry.width, geometry.height)
        let margin = background.map { PixelFormat.rgba.pack($0) } ?? 0
        let storage = try HeapBuffer<UInt32>(repeating: margin, count: width * height)
        let (source, content) = (geometry.source, geometry.content)
        let corner = storage.base + content.y * width + content.x
        if geometry.zoom > 1 {
            PixelZoom.enlarge(canvas, geometry, into: storage.base)
        } else if geometry.isScaled {
            let isOpaque = !canvas.hasTransparency(in: source)
            try PictureScaler(source, to: (content.width, content.height), isOpaque: isOpaque)
                .scale(canvas.pixels, stride: canvas.width, into: corner, pitch: width)
        } else {
            for y in 0..<source.height {
                let pixels = canvas.pixels + (source.y + y) * canvas.width + source.x
                (corner + y * width).update(from: pixels, count: source.width)
            }
        }
        self.width = width
        self.height = height
        self.storage = storage
    }

    var words: UnsafeMutablePointer<UInt32> { storage.base }

    /// Whether a pixel is not fully opaque.
    var hasTransparency: Bool {
        for index in 0..<width * height where words[index] < PixelFormat.opaque { return true }
        return false
    }

    private static func fill(_ canvas: borrowing Canvas, _ word: UInt32) {
        let count = canvas.width * canvas.height
        for index in 0..<count where canvas.pixels[index] < PixelFormat.opaque {
            canvas.pixels[index] = PixelFormat.rgba.draw(canvas.pixels[index], .over, over: word)
        }
    }
}
