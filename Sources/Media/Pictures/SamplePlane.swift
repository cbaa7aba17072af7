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
