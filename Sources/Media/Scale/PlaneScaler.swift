internal import CAV

/// libswscale for one plane of 8-bit samples: every component is scaled by itself, so no colour is converted on the way.
///
/// At the edges the outermost samples stand for what is beyond them. Not thread-safe.
struct PlaneScaler: ~Copyable {
    private let context: UnsafeMutableRawPointer

    /// - Throws: ``TranscodeError/failed(_:code:)`` where libswscale does not want the sizes.
    init(from source: (width: Int, height: Int), to target: (width: Int, height: Int)) throws(TranscodeError) {
        guard
            let context = gifreel_scaler_open(
                Int32(source.width), Int32(source.height), Int32(target.width), Int32(target.height))
        else { throw .library(.scale, code: gifreel_averror_nomem) }
        self.context = context
    }

    deinit {
        gifreel_scaler_close(context)
    }

    /// Scales a whole plane.
    ///
    /// - Parameters:
    ///   - source: Its first sample and the bytes from row to row.
    ///   - target: Likewise; the rows' padding may be written over.
    func scale(
        _ source: (UnsafePointer<UInt8>, stride: Int), rows: Int, into target: (UnsafeMutablePointer<UInt8>, stride: Int)
    ) throws(TranscodeError) {
        let done = gifreel_scaler_run(
            context, source.0, Int32(source.stride), Int32(rows), target.0, Int32(target.stride))
        guard done > 0 else { throw .library(.scale, code: done) }
    }
}
