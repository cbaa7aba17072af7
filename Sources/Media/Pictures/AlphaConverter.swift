/// Writes a canvas with transparent pixels into 4:2:0 planes and an alpha plane.
///
/// Alpha is straight: the colour planes have colours under transparent pixels, too. Players that enlarge a picture mix
/// neighbouring pixels, and four pixels share chroma, so these are the colours of the nearby visible pixels; see
/// ``AlphaBlock``. Farther away, where players use no colour, they are one grey: colours that follow the picture cost up to
/// twice the bytes.
///
/// Works in blocks of 4 × 4 samples, and writes the blocks that a change touches. Not thread-safe.
final class AlphaConverter {
    private let geometry: PictureGeometry
    /// Whether the picture is an unscaled part of the canvas.
    private let isCrop: Bool
    /// Nil if no pixel is interpolated.
    private let scaler: PictureScaler?
    /// The scaled picture; one pixel if the picture is a part of the canvas.
    private let scaled: HeapBuffer<UInt32>
    private let block: AlphaBlock
    /// The mean colour of each block's visible pixels, or the fill colour of a block without visible pixels.
    private let colors: HeapBuffer<UInt32>
    /// Whether a block has no visible pixels.
    private let isEmpty: HeapBuffer<Bool>
    private let columns: Int
    private let rows: Int
    private var isFirst = true

    /// The colour under transparent pixels far from visible pixels, in the format ``PixelFormat/yuv(background:)``.
    private static let nothing: UInt32 = PixelFormat.yuv(0x80_8080)
    /// A value that is no colour: its chroma is out of range.
    private static let unknown = UInt32.max
    private static let side = AlphaBlock.side

    init(_ geometry: PictureGeometry) throws(TranscodeError) {
        self.geometry = geometry
        isCrop = geometry.zoom == 1 && !geometry.isScaled && !geometry.hasMargin
        scaler =
            geometry.isScaled
            ? try PictureScaler(geometry.source, to: (geometry.content.width, geometry.content.height), isOpaque: false) : nil
        scaled = try HeapBuffer(repeating: 0, count: isCrop ? 1 : geometry.width * geometry.height)
        block = try AlphaBlock()
        columns = (geometry.width + Self.side - 1) / Self.side
        rows = (geometry.height + Self.side - 1) / Self.side
        colors = try HeapBuffer(repeating: Self.nothing, count: columns * rows)
        isEmpty = try HeapBuffer(repeating: true, count: columns * rows)
    }

    /// Writes the picture if a part of it changed.
    ///
    /// - Parameters:
    ///   - canvas: A canvas in the format ``PixelFormat/rgba``.
    ///   - rectangle: A rectangle that contains all canvas changes since the previous call. The first call ignores it.
    ///   - planes: Planes with alpha, which hold the picture of the previous call.
    /// - Returns: Whether a part of the picture changed.
    func convert(
        _ canvas: borrowing Canvas, _ rectangle: Rectangle, into planes: FramePlanes
    ) throws(TranscodeError) -> Bool {
        let source = geometry.source
        var area = (isFirst ? source : rectangle).intersection(source)
        if area.isEmpty { return false }
        area.x -= source.x
        area.y -= source.y
        var view = PixelView(
            pixels: UnsafePointer(canvas.pixels + source.y * canvas.width + source.x), stride: canvas.width,
            width: geometry.width, height: geometry.height)
        if !isCrop {
            let pixels = scaled.base
            if let scaler {
                let corner = pixels + geometry.content.y * geometry.width + geometry.content.x
                try scaler.scale(canvas.pixels, stride: canvas.width, into: corner, pitch: geometry.width)
            } else {
                PixelZoom.enlarge(canvas, geometry, into: pixels)
            }
            area = Rectangle(x: 0, y: 0, width: geometry.width, height: geometry.height)
            view = PixelView(
                pixels: UnsafePointer(pixels), stride: geometry.width, width: geometry.width, height: geometry.height)
        }
        defer { isFirst = false }
        return write(view, area, into: planes)
    }

    private func write(_ view: PixelView, _ area: Rectangle, into planes: FramePlanes) -> Bool {
        guard let alpha = planes.alpha else { return false }
        var difference: UInt8 = 0
        let left = area.x / Self.side
        let right = (area.maxX + Self.side - 1) / Self.side
        let top = area.y / Self.side
        let bottom = (area.maxY + Self.side - 1) / Self.side
        for row in top..<bottom {
            for column in left..<right {
                let index = row * columns + column
                let wasVisible = !isEmpty.base[index]
                let mean = block.load(view, x: column * Self.side, y: row * Self.side)
                difference |= block.storeAlpha(alpha)
                isEmpty.base[index] = mean == nil
                guard let mean else {
                    // The samples still hold the earlier pixels, so the loop below always rewrites them.
                    if wasVisible { colors.base[index] = Self.unknown }
                    continue
                }
                colors.base[index] = mean
                difference |= block.storeColors(planes)
            }
        }
        // Blocks without visible pixels take on the colour of their neighbours.
        for row in max(0, top - 1)..<min(rows, bottom + 1) {
            for column in max(0, left - 1)..<min(columns, right + 1) where isEmpty.base[row * columns + column] {
                let index = row * columns + column
                let color = neighbours(row, column) ?? Self.nothing
                guard isFirst || color != colors.base[index] else { continue }
                colors.base[index] = color
                block.fill(color, view, x: column * Self.side, y: row * Self.side)
                difference |= block.storeColors(planes)
            }
        }
        return difference != 0
    }

    /// Returns the mean colour of neighbouring blocks with visible pixels; nil if there are none.
    private func neighbours(_ row: Int, _ column: Int) -> UInt32? {
        var sum = ColorSum()
        for y in max(0, row - 1)...min(rows - 1, row + 1) {
            for x in max(0, column - 1)...min(columns - 1, column + 1) where !isEmpty.base[y * columns + x] {
                sum.add(colors.base[y * columns + x], weight: 1)
            }
        }
        return sum.mean
    }
}

/// The pixels of a picture in memory, R, G, B, A with straight alpha.
struct PixelView {
    let pixels: UnsafePointer<UInt32>
    /// Pixels from one row to the next.
    let stride: Int
    let width: Int
    let height: Int
}
