internal import Glibc

/// Writes the planes of a clip to those of an encoder, unchanged or scaled, without converting them to pixels. Not thread-safe.
final class PlanePasser {
    /// The chroma siting of the result.
    let siting: FramePlanes.Siting

    private let geometry: PictureGeometry
    /// Nil if the size stays the same.
    private let scaler: ChromaScaler?
    private let luma: SamplePlane
    private let cb: SamplePlane
    private let cr: SamplePlane
    /// Planes for pictures given as pixels; nil before the first one.
    private var converted: ConvertedPlanes?

    /// - Parameters:
    ///   - siting: The chroma siting of the clip.
    ///   - keepsSiting: Whether the result may have left-sited chroma.
    /// - Returns: Nil if pictures have to be composed of pixels.
    init?(_ geometry: PictureGeometry, _ siting: FramePlanes.Siting, keepsSiting: Bool) throws(TranscodeError) {
        let source = geometry.source
        guard geometry.zoom == 1, !geometry.hasMargin, source.x % 2 == 0, source.y % 2 == 0 else { return nil }
        let isScaled = geometry.isScaled
        if isScaled {
            // With an odd side, chroma and luma end at different positions.
            guard source.width % 2 == 0, source.height % 2 == 0,
                source.width <= geometry.width * PlaneScaler.largestReduction,
                source.height <= geometry.height * PlaneScaler.largestReduction
            else { return nil }
        } else {
            guard siting == .center || keepsSiting else { return nil }
        }
        scaler =
            isScaled
            ? try ChromaScaler(
                from: (source.width, source.height), siting, to: (geometry.width, geometry.height)) : nil
        let (width, height) = isScaled ? (geometry.width, geometry.height) : (0, 0)
        luma = try SamplePlane(width: (width + 1) & ~1, height: (height + 1) & ~1)
        cb = try SamplePlane(width: width, height: height)
        cr = try SamplePlane(width: width, height: height)
        self.geometry = geometry
        self.siting = isScaled ? .center : siting
    }

    /// Writes a picture given as pixels; see ``pass(_:into:)``.
    ///
    /// - Parameters:
    ///   - words: The pixels, R, G, B, A.
    ///   - size: The size of the canvas.
    func pass(
        _ words: UnsafeBufferPointer<UInt32>, size: (width: Int, height: Int), into planes: FramePlanes
    ) throws(TranscodeError) -> Bool {
        let buffers: ConvertedPlanes
        if let converted { buffers = converted } else { buffers = try ConvertedPlanes(width: size.width, height: size.height) }
        converted = buffers
        return try pass(buffers.convert(words), into: planes)
    }

    /// Writes a picture.
    ///
    /// - Parameter planes: Planes that hold the picture of the previous call.
    /// - Returns: Whether a sample changed.
    func pass(_ source: FramePlanes, into planes: FramePlanes) throws(TranscodeError) -> Bool {
        let part = source.from(x: geometry.source.x, y: geometry.source.y)
        guard let scaler else { return copy(part, into: planes) }
        let scaled = (luma.samples, cb.samples, cr.samples)
        try scaler.scale(part, into: scaled, strides: (luma.stride, cb.stride, cr.stride))
        var hasChanged = false
        VideoScaler.finish(scaled.0, stride: luma.stride, geometry, most: 235)
        for y in 0..<geometry.evenHeight {
            if Self.copy(luma.row(y), to: planes.luma + y * planes.lumaStride, count: geometry.evenWidth) { hasChanged = true }
        }
        if VideoScaler.halve(cb, geometry, into: planes.cb, stride: planes.cbStride) { hasChanged = true }
        if VideoScaler.halve(cr, geometry, into: planes.cr, stride: planes.crStride) { hasChanged = true }
        return hasChanged
    }

    /// Copies the planes. The last column and row of an odd side are repeated.
    private func copy(_ source: FramePlanes, into planes: FramePlanes) -> Bool {
        let (width, height) = (geometry.width, geometry.height)
        var hasChanged = false
        for y in 0..<geometry.evenHeight {
            let (row, target) = (source.luma + min(y, height - 1) * source.lumaStride, planes.luma + y * planes.lumaStride)
            if Self.copy(row, to: target, count: width) { hasChanged = true }
            if width & 1 == 1 { target[width] = target[width - 1] }
        }
        for y in 0..<geometry.evenHeight / 2 {
            let count = geometry.evenWidth / 2
            if Self.copy(source.cb + y * source.cbStride, to: planes.cb + y * planes.cbStride, count: count) {
                hasChanged = true
            }
            if Self.copy(source.cr + y * source.crStride, to: planes.cr + y * planes.crStride, count: count) {
                hasChanged = true
            }
        }
        return hasChanged
    }

    /// Copies a row. Returns whether it changed.
    private static func copy(_ row: UnsafePointer<UInt8>, to target: UnsafeMutablePointer<UInt8>, count: Int) -> Bool {
        if memcmp(row, target, count) == 0 { return false }
        target.update(from: row, count: count)
        return true
    }
}

/// Planes for pictures given as pixels. Not thread-safe.
private final class ConvertedPlanes {
    private let width: Int
    private let height: Int
    private let planes: OwnedPlanes
    /// Two rows of pixels.
    private let rows: HeapBuffer<UInt32>

    init(width: Int, height: Int) throws(TranscodeError) {
        planes = try OwnedPlanes(width: (width + 1) & ~1, height: (height + 1) & ~1)
        rows = try HeapBuffer(repeating: 0, count: 2 * width)
        (self.width, self.height) = (width, height)
    }

    func convert(_ words: UnsafeBufferPointer<UInt32>) -> FramePlanes {
        let planes = planes.planes
        for y in stride(from: 0, to: height, by: 2) {
            for (number, line) in [y, min(y + 1, height - 1)].enumerated() {
                for x in 0..<width { rows.base[number * width + x] = PixelFormat.yuv(words[line * width + x]) }
            }
            _ = PixelConverter.convert(
                PixelConverter.RowPair(upper: rows.base, lower: rows.base + width, width: width, y: y),
                Rectangle(x: 0, y: y, width: width, height: 2), into: planes)
        }
        return planes
    }
}
