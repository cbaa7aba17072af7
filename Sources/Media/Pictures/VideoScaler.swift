/// Writes a part of a canvas into the encoder's planes at another size.
///
/// The canvas' converted colours are split into three planes of its own size, and each is scaled. Any change scales the whole
/// frame: a filter reaches beyond the changed rectangle, and libswscale cannot scale parts. Chroma is scaled to the picture's
/// size, and for 4:2:0 then halved as in any other frame, so that the last column and row of an odd side are correct. Not
/// thread-safe.
final class VideoScaler {
    private let geometry: PictureGeometry
    private let scaler: PlaneScaler
    private let luma: SamplePlane
    private let cb: SamplePlane
    private let cr: SamplePlane
    /// A chroma plane of the picture's size.
    private let chroma: SamplePlane
    /// A plane of the scaled canvas if the picture has a margin; otherwise empty.
    private let content: SamplePlane
    /// The margin's colour in the canvas' format.
    private let margin: UInt32
    private var isFirst = true

    /// - Parameter background: The colour of a margin.
    /// - Throws: ``TranscodeError`` if an allocation fails.
    init(_ geometry: PictureGeometry, background: RGB) throws(TranscodeError) {
        let source = geometry.source
        self.geometry = geometry
        let shown = (width: geometry.content.width, height: geometry.content.height)
        scaler = try PlaneScaler(from: (source.width, source.height), to: shown)
        content = try SamplePlane(
            width: geometry.hasMargin ? shown.width : 0, height: geometry.hasMargin ? shown.height : 0)
        margin = PixelFormat.yuv(background: background).pack(background)
        luma = try SamplePlane(width: source.width, height: source.height)
        cb = try SamplePlane(width: source.width, height: source.height)
        cr = try SamplePlane(width: source.width, height: source.height)
        chroma = try SamplePlane(width: geometry.width, height: geometry.height)
    }

    /// Writes the picture if a part of it changed.
    ///
    /// - Parameters:
    ///   - canvas: A canvas in the format ``PixelFormat/yuv(background:)``.
    ///   - rectangle: A rectangle that contains all canvas changes since the previous call. The first call ignores it.
    ///   - planes: Planes that hold the picture of the previous call.
    /// - Returns: Whether a part of the picture changed.
    func convert(
        _ canvas: borrowing Canvas, _ rectangle: Rectangle, into planes: FramePlanes
    ) throws(TranscodeError) -> Bool {
        let changed = rectangle.intersection(geometry.source)
        guard unpack(canvas, isFirst ? geometry.source : changed) || isFirst else { return false }
        isFirst = false
        let margin = YUVSample(margin)
        try scale(luma, margin: margin.luma, into: planes.luma, stride: planes.lumaStride)
        Self.finish(planes.luma, stride: planes.lumaStride, geometry, most: 235)
        guard planes.chroma == .half else {
            try scale(cb, margin: margin.cb, into: planes.cb, stride: planes.cbStride)
            Self.finish(planes.cb, stride: planes.cbStride, geometry, most: 240)
            try scale(cr, margin: margin.cr, into: planes.cr, stride: planes.crStride)
            Self.finish(planes.cr, stride: planes.crStride, geometry, most: 240)
            return true
        }
        try scale(cb, margin: margin.cb, into: chroma.samples, stride: chroma.stride)
        _ = Self.halve(chroma, geometry, into: planes.cb, stride: planes.cbStride)
        try scale(cr, margin: margin.cr, into: chroma.samples, stride: chroma.stride)
        _ = Self.halve(chroma, geometry, into: planes.cr, stride: planes.crStride)
        return true
    }

    /// Scales a plane of the canvas into a plane of the picture, and fills the margin.
    private func scale(
        _ plane: borrowing SamplePlane, margin: UInt8, into target: UnsafeMutablePointer<UInt8>, stride: Int
    ) throws(TranscodeError) {
        guard geometry.hasMargin else { return try scaler.scale(plane, into: target, stride: stride) }
        // Scales into a separate plane, because libswscale writes beyond the ends of rows.
        try scaler.scale(plane, into: content.samples, stride: content.stride)
        let place = geometry.content
        for y in 0..<geometry.height {
            let row = target + y * stride
            row.update(repeating: margin, count: geometry.width)
            guard y >= place.y && y < place.maxY else { continue }
            (row + place.x).update(from: content.row(y - place.y), count: place.width)
        }
    }

    /// Splits the rectangle's words into the planes. Returns whether a sample changed.
    private func unpack(_ canvas: borrowing Canvas, _ rectangle: Rectangle) -> Bool {
        let source = geometry.source
        var difference: UInt8 = 0
        for y in rectangle.y..<rectangle.maxY {
            let words = canvas.pixels + (y * canvas.width + rectangle.x)
            let offset = (y - source.y) * luma.stride + rectangle.x - source.x
            let (luma, cb, cr) = (luma.samples + offset, cb.samples + offset, cr.samples + offset)
            for x in 0..<rectangle.width {
                let sample = YUVSample(words[x])
                difference |= (luma[x] ^ sample.luma) | (cb[x] ^ sample.cb) | (cr[x] ^ sample.cr)
                luma[x] = sample.luma
                cb[x] = sample.cb
                cr[x] = sample.cr
            }
        }
        return difference != 0
    }

    /// Clamps the filter's overshoot to the valid range, and repeats the last column and row of an odd side.
    static func finish(_ plane: UnsafeMutablePointer<UInt8>, stride: Int, _ geometry: PictureGeometry, most: UInt8) {
        for y in 0..<geometry.height {
            let row = plane + y * stride
            for x in 0..<geometry.width { row[x] = min(max(row[x], 16), most) }
            if geometry.width & 1 == 1 { row[geometry.width] = row[geometry.width - 1] }
        }
        if geometry.height & 1 == 1 {
            let last = plane + (geometry.height - 1) * stride
            (last + stride).update(from: last, count: geometry.evenWidth)
        }
    }

    /// Writes the rounded mean of each 2×2 block, within the range of chroma. Repeats the last column and row of an odd side.
    ///
    /// - Parameter chroma: A plane of the picture's size.
    /// - Returns: Whether a sample changed.
    static func halve(
        _ chroma: borrowing SamplePlane, _ geometry: PictureGeometry, into target: UnsafeMutablePointer<UInt8>, stride: Int
    ) -> Bool {
        var difference: UInt8 = 0
        for y in 0..<geometry.evenHeight / 2 {
            let upper = chroma.row(2 * y)
            let lower = chroma.row(min(2 * y + 1, geometry.height - 1))
            let row = target + y * stride
            for x in 0..<geometry.width / 2 {
                let sum =
                    UInt16(upper[2 &* x]) &+ UInt16(upper[2 &* x &+ 1]) &+ UInt16(lower[2 &* x]) &+ UInt16(lower[2 &* x &+ 1])
                let mean = UInt8(truncatingIfNeeded: min(max((sum &+ 2) >> 2, 16), 240))
                difference |= row[x] ^ mean
                row[x] = mean
            }
            if geometry.width & 1 == 1 {
                let last = geometry.width - 1
                let sum = (UInt16(upper[last]) &+ UInt16(lower[last]) &+ 1) >> 1
                let mean = UInt8(truncatingIfNeeded: min(max(sum, 16), 240))
                difference |= row[last / 2] ^ mean
                row[last / 2] = mean
            }
        }
        return difference != 0
    }
}
