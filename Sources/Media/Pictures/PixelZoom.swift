/// Enlarges pixels to squares: every pixel of a row is repeated, and so is every row. Colours are not mixed.
enum PixelZoom {
    /// Writes a row of pixels, each repeated.
    static func repeatPixels(
        _ pixels: UnsafePointer<UInt32>, count: Int, zoom: Int, into row: UnsafeMutablePointer<UInt32>
    ) {
        var target = row
        for index in 0..<count {
            target.update(repeating: pixels[index], count: zoom)
            target += zoom
        }
    }

    /// Writes an enlarged canvas in its own pixel format into a picture whose rows have no padding. Leaves a margin unchanged.
    static func enlarge(_ canvas: borrowing Canvas, _ geometry: PictureGeometry, into words: UnsafeMutablePointer<UInt32>) {
        let (zoom, stride) = (geometry.zoom, geometry.width)
        let corner = words + geometry.content.y * stride + geometry.content.x
        for y in 0..<canvas.height {
            let first = corner + y * zoom * stride
            repeatPixels(canvas.pixels + y * canvas.width, count: canvas.width, zoom: zoom, into: first)
            for copy in 1..<max(1, zoom) { (first + copy * stride).update(from: first, count: canvas.width * zoom) }
        }
    }
}

/// Writes a canvas, with enlarged pixels or with a margin, into the encoder's planes. Not thread-safe.
///
/// With an even zoom, chroma samples lie within the enlarged pixels: 4:2:0 then holds the colour of every pixel exactly.
final class VideoZoom {
    private let geometry: PictureGeometry
    /// The margin's colour in the canvas' format.
    private let margin: UInt32
    /// Two rows of the picture.
    private let upper: HeapBuffer<UInt32>
    private let lower: HeapBuffer<UInt32>
    private var isFirst = true

    /// - Parameter background: The colour of a margin.
    init(_ geometry: PictureGeometry, background: RGB) throws(TranscodeError) {
        self.geometry = geometry
        margin = PixelFormat.yuv(background: background).pack(background)
        upper = try HeapBuffer(repeating: margin, count: geometry.width)
        lower = try HeapBuffer(repeating: margin, count: geometry.width)
    }

    /// Writes the changed part of the picture.
    ///
    /// - Parameters:
    ///   - canvas: A canvas in the format ``PixelFormat/yuv(background:)``.
    ///   - rectangle: The part of the canvas that changed.
    ///   - planes: Planes that hold the picture of the previous call.
    /// - Returns: Whether a sample changed.
    func convert(_ canvas: borrowing Canvas, _ rectangle: Rectangle, into planes: FramePlanes) -> Bool {
        if rectangle.isEmpty { return false }
        var area = rectangle.scaled(by: geometry.zoom)
        area.x += geometry.content.x
        area.y += geometry.content.y
        if isFirst { area = Rectangle(x: 0, y: 0, width: geometry.width, height: geometry.height) }
        isFirst = false
        var hasChanged = false
        // No row is loaded yet.
        var (upperSource, lowerSource) = (Int.min, Int.min)
        for y in stride(from: area.y & ~1, to: area.maxY, by: 2) {
            let sources = (row(y), row(min(y + 1, geometry.height - 1)))
            if sources.0 != upperSource { enlarge(canvas, row: sources.0, into: upper.base) }
            if sources.1 != lowerSource, sources.1 != sources.0 { enlarge(canvas, row: sources.1, into: lower.base) }
            upperSource = sources.0
            // Equal rows share a buffer.
            if sources.1 != sources.0 { lowerSource = sources.1 }
            let pair = PixelConverter.RowPair(
                upper: UnsafePointer(upper.base),
                lower: UnsafePointer(sources.1 == sources.0 ? upper.base : lower.base), width: geometry.width, y: y)
            if PixelConverter.convert(pair, area, into: planes) { hasChanged = true }
        }
        return hasChanged
    }

    /// Returns the row of the canvas that a row of the picture shows; -1 in the margin.
    private func row(_ y: Int) -> Int {
        y >= geometry.content.y && y < geometry.content.maxY ? (y - geometry.content.y) / geometry.zoom : -1
    }

    private func enlarge(_ canvas: borrowing Canvas, row: Int, into words: UnsafeMutablePointer<UInt32>) {
        if row < 0 { return words.update(repeating: margin, count: geometry.width) }
        if geometry.hasMargin { words.update(repeating: margin, count: geometry.width) }
        PixelZoom.repeatPixels(
            canvas.pixels + row * canvas.width, count: canvas.width, zoom: geometry.zoom, into: words + geometry.content.x)
    }
}
