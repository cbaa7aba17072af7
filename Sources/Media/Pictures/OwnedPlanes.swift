/// The planes of a picture and their memory, filled with zeros at first. Not thread-safe.
final class OwnedPlanes {
    let width: Int
    let height: Int
    let chroma: ChromaFormat
    private let hasAlpha: Bool
    private let luma: SamplePlane
    private let cb: SamplePlane
    private let cr: SamplePlane
    private let alpha: SamplePlane

    /// - Parameters:
    ///   - width: In pixels; even, like the height.
    ///   - hasColor: Whether there are colour planes; otherwise they are empty.
    /// - Throws: ``TranscodeError/outOfMemory``.
    init(
        width: Int, height: Int, _ chroma: ChromaFormat = .half, hasColor: Bool = true, hasAlpha: Bool = false
    ) throws(TranscodeError) {
        let (columns, rows) = hasColor ? (width, height) : (0, 0)
        luma = try SamplePlane(width: columns, height: rows)
        cb = try SamplePlane(width: columns >> chroma.shift, height: rows >> chroma.shift)
        cr = try SamplePlane(width: columns >> chroma.shift, height: rows >> chroma.shift)
        alpha = try SamplePlane(width: hasAlpha ? width : 0, height: hasAlpha ? height : 0)
        (self.width, self.height) = (width, height)
        (self.chroma, self.hasAlpha) = (chroma, hasAlpha)
    }

    var planes: FramePlanes {
        FramePlanes(
            luma: luma.samples, cb: cb.samples, cr: cr.samples, lumaStride: luma.stride, cbStride: cb.stride,
            crStride: cr.stride, chroma: chroma,
            alpha: hasAlpha ? FramePlanes.Alpha(samples: alpha.samples, stride: alpha.stride) : nil)
    }
}
