/// Memory for the planes of a source that no encoder uses.
final class UnusedPlanes {
    private let luma: SamplePlane
    private let cb: SamplePlane
    private let cr: SamplePlane
    private let alpha: SamplePlane
    private let chroma: ChromaFormat

    /// - Parameters:
    ///   - color: Whether there are colour planes; otherwise they are empty.
    ///   - alpha: Whether there is an alpha plane; otherwise it is empty.
    init<Decoder: AnimationDecoder & ~Copyable>(
        _ source: SampleSource<Decoder>, color: Bool, alpha: Bool
    ) throws(TranscodeError) {
        let (width, height) = color ? (source.width, source.height) : (0, 0)
        luma = try SamplePlane(width: width, height: height)
        chroma = source.chroma
        cb = try SamplePlane(width: width >> chroma.shift, height: height >> chroma.shift)
        cr = try SamplePlane(width: width >> chroma.shift, height: height >> chroma.shift)
        self.alpha = try SamplePlane(width: alpha ? source.width : 0, height: alpha ? source.height : 0)
    }

    var planes: PixelConverter.Planes {
        PixelConverter.Planes(
            luma: luma.samples, cb: cb.samples, cr: cr.samples, lumaStride: luma.stride, cbStride: cb.stride,
            crStride: cr.stride, chroma: chroma)
    }

    var alphaPlane: PixelConverter.AlphaPlane {
        PixelConverter.AlphaPlane(samples: alpha.samples, stride: alpha.stride)
    }
}
