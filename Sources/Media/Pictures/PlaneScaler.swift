internal import CAV

/// Scales one plane of 8-bit samples by libswscale. Each component is scaled separately, so no colour is converted.
///
/// Edge samples are repeated beyond the edges. Not thread-safe.
struct PlaneScaler: ~Copyable {
    private let context: UnsafeMutableRawPointer

    /// - Throws: ``TranscodeError/failed(_:code:)`` if libswscale rejects the sizes.
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
    ///   - target: The first sample; the rows' padding may be written over.
    ///   - stride: Bytes from one row of the target to the next.
    func scale(
        _ source: borrowing SamplePlane, into target: UnsafeMutablePointer<UInt8>, stride: Int
    ) throws(TranscodeError) {
        let done = gifreel_scaler_run(
            context, source.samples, Int32(source.stride), Int32(source.height), target, Int32(stride))
        guard done > 0 else { throw .library(.scale, code: done) }
    }
}

/// A plane of 8-bit samples, aligned and padded so that SIMD code may access bytes past the ends of its rows. Not thread-safe.
struct SamplePlane: ~Copyable {
    /// Rows are padded to a multiple of this, and by at least this.
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
        let storage = try HeapBuffer<UInt8>(count: stride * height + Self.padding)
        storage.base.initialize(repeating: 0, count: storage.count)
        self.stride = stride
        self.storage = storage
        self.width = width
        self.height = height
    }

    var samples: UnsafeMutablePointer<UInt8> { storage.base }

    func row(_ y: Int) -> UnsafeMutablePointer<UInt8> { samples + y * stride }
}
