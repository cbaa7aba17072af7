internal import CAV

/// Keeps the planes of a clip's picture until the next one. Not thread-safe.
final class ClipPlanes {
    private let width: Int
    private let height: Int
    private var held: UnsafeMutablePointer<AVFrame>?
    /// The planes of a picture that had to be converted; nil before the first.
    private var converted: Converted?
    /// The planes of the last picture.
    private(set) var current: FramePlanes?

    private struct Converted: ~Copyable {
        let luma: SamplePlane
        let cb: SamplePlane
        let cr: SamplePlane
        /// Two rows of pixels.
        let rows: HeapBuffer<UInt32>

        var planes: PixelConverter.Planes {
            PixelConverter.Planes(
                luma: luma.samples, cb: cb.samples, cr: cr.samples, lumaStride: luma.stride, cbStride: cb.stride,
                crStride: cr.stride)
        }
    }

    /// - Parameters:
    ///   - width: Of the pictures, in pixels.
    ///   - height: As `width`.
    init(width: Int, height: Int) throws(TranscodeError) {
        (self.width, self.height) = (width, height)
        held = av_frame_alloc()
        guard held != nil else { throw .outOfMemory }
    }

    deinit { av_frame_free(&held) }

    /// Keeps a picture of 4:2:0 with 8 bits.
    func hold(_ frame: UnsafeMutablePointer<AVFrame>) throws(TranscodeError) -> FramePlanes {
        av_frame_unref(held)
        guard let held, av_frame_ref(held, frame) >= 0, let luma = held.pointee.data.0, let cb = held.pointee.data.1,
            let cr = held.pointee.data.2
        else { throw .outOfMemory }
        let strides = held.pointee.linesize
        let planes = FramePlanes(
            luma: luma, cb: cb, cr: cr, lumaStride: Int(strides.0), cbStride: Int(strides.1), crStride: Int(strides.2))
        current = planes
        return planes
    }

    /// Converts a picture in the pixels of ``ClipPictures``.
    func convert(_ words: UnsafePointer<UInt32>) throws(TranscodeError) -> FramePlanes {
        let (evenWidth, evenHeight) = ((width + 1) & ~1, (height + 1) & ~1)
        if converted == nil {
            converted = Converted(
                luma: try SamplePlane(width: evenWidth, height: evenHeight),
                cb: try SamplePlane(width: evenWidth / 2, height: evenHeight / 2),
                cr: try SamplePlane(width: evenWidth / 2, height: evenHeight / 2), rows: try HeapBuffer(count: 2 * width))
        }
        guard let planes = converted?.planes, let rows = converted?.rows.base else { throw .outOfMemory }
        for y in stride(from: 0, to: height, by: 2) {
            for (number, line) in [y, min(y + 1, height - 1)].enumerated() {
                for x in 0..<width { rows[number * width + x] = PixelFormat.yuv(words[line * width + x]) }
            }
            _ = PixelConverter.convert(
                PixelConverter.RowPair(upper: rows, lower: rows + width, width: width, y: y),
                Rectangle(x: 0, y: y, width: width, height: 2), into: planes)
        }
        let result = FramePlanes(
            luma: planes.luma, cb: planes.cb, cr: planes.cr, lumaStride: planes.lumaStride, cbStride: planes.cbStride,
            crStride: planes.crStride)
        current = result
        return result
    }
}
