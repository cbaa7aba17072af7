internal import CMedia

/// Scales one plane of 8-bit or 16-bit samples with libswscale. Each component is scaled separately, so no colour is converted.
///
/// Edge samples are repeated beyond the edges. Not thread-safe.
struct PlaneScaler: ~Copyable {
    /// The largest reduction of one step. From 43 up, libswscale's rounded filter weights change flat areas by one level.
    static let largestReduction = 32

    /// The steps in order: several for a large reduction.
    private let steps: [ScalingStep]

    /// - Parameters:
    ///   - source: The size in samples.
    ///   - bytes: Bytes per sample: 1, or 2 in native byte order.
    /// - Throws: ``TranscodeError/failed(_:code:)`` if libswscale rejects the sizes.
    init(
        from source: (width: Int, height: Int), to target: (width: Int, height: Int), bytes: Int = 1
    ) throws(TranscodeError) {
        var steps: [ScalingStep] = []
        var size = source
        repeat {
            let next = (width: Self.reduced(size.width, to: target.width), height: Self.reduced(size.height, to: target.height))
            steps.append(try ScalingStep(from: size, to: next, bytes: bytes, isLast: next == target))
            size = next
        } while size != target
        self.steps = steps
    }

    /// The side after one step from `side` to `target`.
    private static func reduced(_ side: Int, to target: Int) -> Int {
        max(target, (side + largestReduction - 1) / largestReduction)
    }

    /// Scales a whole plane.
    ///
    /// - Parameters:
    ///   - target: The first sample; the rows' padding may be overwritten.
    ///   - stride: Bytes from one row of the target to the next.
    func scale(
        _ source: borrowing SamplePlane, into target: UnsafeMutablePointer<UInt8>, stride: Int
    ) throws(TranscodeError) {
        var (samples, rowLength) = (source.samples, source.stride)
        for step in steps {
            let (result, resultStride) = step.intermediate ?? (target, stride)
            try step.scale(samples, stride: rowLength, into: result, stride: resultStride)
            (samples, rowLength) = (result, resultStride)
        }
    }
}

/// One pass of libswscale over a plane. Not thread-safe.
private final class ScalingStep {
    private let context: UnsafeMutableRawPointer
    private let rows: Int
    private let plane: SamplePlane?
    /// The first sample of the step's own plane, and its stride; nil in the last step.
    let intermediate: (samples: UnsafeMutablePointer<UInt8>, stride: Int)?

    /// - Parameter isLast: Whether the result goes into the caller's plane.
    init(
        from source: (width: Int, height: Int), to target: (width: Int, height: Int), bytes: Int, isLast: Bool
    ) throws(TranscodeError) {
        if isLast {
            plane = nil
            intermediate = nil
        } else {
            let plane = try SamplePlane(width: target.width * bytes, height: target.height)
            intermediate = (plane.samples, plane.stride)
            self.plane = consume plane
        }
        guard
            let context = gifreel_scaler_open(
                Int32(source.width), Int32(source.height), Int32(target.width), Int32(target.height), Int32(bytes))
        else { throw .library(.scale, code: gifreel_averror_nomem) }
        self.context = context
        rows = source.height
    }

    deinit {
        gifreel_scaler_close(context)
    }

    func scale(
        _ source: UnsafePointer<UInt8>, stride: Int, into target: UnsafeMutablePointer<UInt8>, stride targetStride: Int
    ) throws(TranscodeError) {
        let done = gifreel_scaler_run(
            context, source, nil, nil, Int32(stride), 0, 0, Int32(rows), target, nil, nil, Int32(targetStride), 0, 0)
        guard done > 0 else { throw .library(.scale, code: done) }
    }
}

/// A plane of bytes, aligned and padded so that SIMD code may access bytes past the ends of its rows. Not thread-safe.
struct SamplePlane: ~Copyable {
    /// Rows are padded to a multiple of this number, and by at least as many bytes.
    private static let padding = 64

    let width: Int
    let height: Int
    /// Bytes from one row to the next.
    let stride: Int
    private let storage: HeapBuffer<UInt8>

    /// A plane of zeros.
    ///
    /// - Throws: ``TranscodeError/outOfMemory``.
    init(width: Int, height: Int) throws(TranscodeError) {
        let stride = (width + 2 * Self.padding - 1) / Self.padding * Self.padding
        let storage = try HeapBuffer<UInt8>(repeating: 0, count: stride * height + Self.padding)
        self.stride = stride
        self.storage = storage
        self.width = width
        self.height = height
    }

    var samples: UnsafeMutablePointer<UInt8> { storage.base }

    func row(_ y: Int) -> UnsafeMutablePointer<UInt8> { samples + y * stride }
}
