/// A luma plane with a border that repeats its edges, so that blocks partly outside the picture can be read.
///
/// The picture is extended to whole blocks. Not thread-safe.
final class BorderedPlane {
    /// The width of the border in pixels.
    static let border = 32

    let width: Int
    let height: Int
    /// Samples from one row to the next.
    let stride: Int
    /// The upper left sample of the picture.
    let samples: UnsafeMutablePointer<UInt8>
    private let storage: HeapBuffer<UInt8>
    private let rows: Int

    init(width: Int, height: Int) throws(TranscodeError) {
        self.width = width
        self.height = height
        stride = Self.bordered(width)
        rows = Self.bordered(height)
        storage = try HeapBuffer(count: stride * rows)
        samples = storage.base + Self.border * stride + Self.border
    }

    /// The length of a side with both borders.
    private static func bordered(_ side: Int) -> Int {
        (side + MotionField.block - 1) / MotionField.block * MotionField.block + 2 * border
    }

    /// The memory of a plane, in bytes.
    static func bytes(width: Int, height: Int) -> Int { bordered(width) * bordered(height) }

    /// Reads the luma of a canvas of the plane's size, in the format ``PixelFormat/yuv(background:)``.
    func load(_ canvas: borrowing Canvas) {
        for y in 0..<height {
            let words = canvas.pixels + y * width
            let row = samples + y * stride
            for x in 0..<width { row[x] = UInt8(truncatingIfNeeded: words[x]) }
        }
        extend()
    }

    /// Repeats the picture's edges up to whole blocks and into the border.
    func extend() {
        for y in 0..<height {
            let row = samples + y * stride
            (row - Self.border).update(repeating: row[0], count: Self.border)
            (row + width).update(repeating: row[width - 1], count: stride - Self.border - width)
        }
        let first = storage.base + Self.border * stride
        for row in 0..<Self.border { (storage.base + row * stride).update(from: first, count: stride) }
        let last = first + (height - 1) * stride
        for row in Self.border + height..<rows { (storage.base + row * stride).update(from: last, count: stride) }
    }
}
