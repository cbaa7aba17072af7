internal import CMedia

/// Scales 4:2:0 pictures to 4:4:4 with libswscale. Not thread-safe.
final class ChromaScaler {
    private let context: UnsafeMutableRawPointer
    private let rows: Int

    /// - Parameters:
    ///   - source: The size of the source in pixels; both sides are even.
    ///   - siting: The chroma siting of the source.
    init(
        from source: (width: Int, height: Int), _ siting: FramePlanes.Siting, to target: (width: Int, height: Int)
    ) throws(TranscodeError) {
        guard
            let context = gifreel_chroma_scaler_open(
                Int32(source.width), Int32(source.height), siting == .left ? 1 : 0, Int32(target.width), Int32(target.height))
        else { throw .library(.scale, code: gifreel_averror_nomem) }
        self.context = context
        rows = source.height
    }

    deinit { gifreel_scaler_close(context) }

    /// Scales a picture. May overwrite the padding of the target's rows.
    func scale(
        _ source: FramePlanes,
        into target: (UnsafeMutablePointer<UInt8>, UnsafeMutablePointer<UInt8>, UnsafeMutablePointer<UInt8>),
        strides: (Int, Int, Int)
    ) throws(TranscodeError) {
        let done = gifreel_scaler_run(
            context, source.luma, source.cb, source.cr, Int32(source.lumaStride), Int32(source.cbStride),
            Int32(source.crStride), Int32(rows), target.0, target.1, target.2, Int32(strides.0), Int32(strides.1),
            Int32(strides.2))
        guard done > 0 else { throw .library(.scale, code: done) }
    }
}
