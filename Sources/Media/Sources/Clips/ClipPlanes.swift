internal import CMedia

/// Keeps the planes of a clip's picture until the next one. Not thread-safe.
final class ClipPlanes {
    private var held: UnsafeMutablePointer<AVFrame>?
    /// The planes of the last picture; nil if there are none.
    private(set) var current: FramePlanes?

    init() throws(TranscodeError) {
        held = av_frame_alloc()
        guard held != nil else { throw .outOfMemory }
    }

    deinit { av_frame_free(&held) }

    /// Keeps an 8-bit picture in 4:2:0.
    func hold(_ frame: UnsafeMutablePointer<AVFrame>) throws(TranscodeError) -> FramePlanes {
        release()
        guard let held, av_frame_ref(held, frame) >= 0, let planes = FramePlanes(held) else { throw .outOfMemory }
        current = planes
        return planes
    }

    func release() {
        av_frame_unref(held)
        current = nil
    }
}

extension FramePlanes {
    /// The planes of an 8-bit frame in 4:2:0 or 4:4:4; nil if it lacks one.
    init?(_ frame: UnsafeMutablePointer<AVFrame>) {
        let (data, strides) = (frame.pointee.data, frame.pointee.linesize)
        guard let luma = data.0, let cb = data.1, let cr = data.2 else { return nil }
        self.init(
            luma: luma, cb: cb, cr: cr, lumaStride: Int(strides.0), cbStride: Int(strides.1), crStride: Int(strides.2),
            chroma: frame.pointee.format == AV_PIX_FMT_YUV444P.rawValue ? .full : .half)
    }
}
