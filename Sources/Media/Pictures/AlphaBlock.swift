/// A block of up to 4 × 4 pixels that are converted from colours with alpha to planes.
///
/// A transparent pixel gets the mean colour of the visible pixels in its 2 × 2 square, or else in the block. So the chroma that
/// the pixels of a square share comes from the visible pixels. Not thread-safe.
final class AlphaBlock {
    static let side = 4
    private static let count = side * side

    /// The position in the picture, and the size, both even. Blocks at the right and lower edges may be smaller.
    private var x = 0
    private var y = 0
    private var width = 0
    private var height = 0
    /// Pixels in the format ``PixelFormat/yuv(background:)``, in rows of 4.
    private let words: HeapBuffer<UInt32>
    private let alpha: HeapBuffer<UInt8>

    init() throws(TranscodeError) {
        words = try HeapBuffer(repeating: 0, count: Self.count)
        alpha = try HeapBuffer(repeating: 0, count: Self.count)
    }

    /// Reads the block at a position. Beyond an odd edge, the last column or row is repeated.
    ///
    /// - Returns: The mean colour of the visible pixels; nil if there are none.
    func load(_ view: PixelView, x: Int, y: Int) -> UInt32? {
        place(view, x: x, y: y)
        var last: (word: UInt32, color: UInt32) = (0, 0)
        var sum = ColorSum()
        var visible = 0
        for row in 0..<height {
            let line = view.pixels + min(y + row, view.height - 1) * view.stride
            for column in 0..<width {
                let word = line[min(x + column, view.width - 1)]
                let index = row * Self.side + column
                alpha.base[index] = UInt8(truncatingIfNeeded: word >> 24)
                if word >> 24 == 0 { continue }
                if word != last.word { last = (word, PixelFormat.yuv(word)) }
                words.base[index] = last.color
                sum.add(last.color, weight: word >> 24)
                visible += 1
            }
        }
        guard let mean = sum.mean else { return nil }
        if visible < width * height { fillTransparent(mean) }
        return mean
    }

    /// Fills the block at a position with one colour and leaves ``alpha`` unchanged.
    func fill(_ color: UInt32, _ view: PixelView, x: Int, y: Int) {
        place(view, x: x, y: y)
        words.base.update(repeating: color, count: Self.count)
    }

    private func place(_ view: PixelView, x: Int, y: Int) {
        self.x = x
        self.y = y
        width = min(Self.side, (view.width + 1) & ~1 - x)
        height = min(Self.side, (view.height + 1) & ~1 - y)
    }

    /// Gives each transparent pixel the mean colour of the visible pixels around it.
    ///
    /// - Parameter mean: The mean colour of the block's visible pixels.
    private func fillTransparent(_ mean: UInt32) {
        for top in stride(from: 0, to: height, by: 2) {
            for left in stride(from: 0, to: width, by: 2) {
                let first = top * Self.side + left
                let square: InlineArray = [first, first + 1, first + Self.side, first + Self.side + 1]
                var sum = ColorSum()
                for corner in square.indices {
                    sum.add(words.base[square[corner]], weight: UInt32(alpha.base[square[corner]]))
                }
                let color = sum.mean ?? mean
                for corner in square.indices where alpha.base[square[corner]] == 0 { words.base[square[corner]] = color }
            }
        }
    }

    /// Writes alpha. Returns bits that are set where a sample changed.
    func storeAlpha(_ plane: FramePlanes.Alpha) -> UInt8 {
        var difference: UInt8 = 0
        for row in 0..<height {
            let target = plane.samples + (y + row) * plane.stride + x
            let source = alpha.base + row * Self.side
            for column in 0..<width {
                difference |= target[column] ^ source[column]
                target[column] = source[column]
            }
        }
        return difference
    }

    /// Writes luma and chroma. In 4:2:0, chroma is the rounded mean of each 2 × 2 square. Returns bits that are set where a
    /// sample changed.
    func storeColors(_ planes: FramePlanes) -> UInt8 {
        var difference: UInt8 = 0
        if planes.chroma == .full {
            for row in 0..<height {
                let source = words.base + row * Self.side
                let luma = planes.luma + (y + row) * planes.lumaStride + x
                let cb = planes.cb + (y + row) * planes.cbStride + x
                let cr = planes.cr + (y + row) * planes.crStride + x
                for column in 0..<width {
                    let sample = YUVSample(source[column])
                    difference |= (luma[column] ^ sample.luma) | (cb[column] ^ sample.cb) | (cr[column] ^ sample.cr)
                    luma[column] = sample.luma
                    cb[column] = sample.cb
                    cr[column] = sample.cr
                }
            }
            return difference
        }
        for row in stride(from: 0, to: height, by: 2) {
            let upper = words.base + row * Self.side
            let lower = upper + Self.side
            let luma = planes.luma + (y + row) * planes.lumaStride + x
            let below = luma + planes.lumaStride
            let cb = planes.cb + (y + row) / 2 * planes.cbStride + x / 2
            let cr = planes.cr + (y + row) / 2 * planes.crStride + x / 2
            for column in 0..<width {
                let (first, second) = (UInt8(truncatingIfNeeded: upper[column]), UInt8(truncatingIfNeeded: lower[column]))
                difference |= (luma[column] ^ first) | (below[column] ^ second)
                luma[column] = first
                below[column] = second
            }
            for column in 0..<width / 2 {
                let pixels = (upper[2 * column], upper[2 * column + 1], lower[2 * column], lower[2 * column + 1])
                // The sum of four 12-bit values; half of the divisor is added to round.
                func mean(_ shift: UInt32) -> UInt8 {
                    let first = (pixels.0 >> shift & 0xfff) &+ (pixels.1 >> shift & 0xfff)
                    let second = (pixels.2 >> shift & 0xfff) &+ (pixels.3 >> shift & 0xfff)
                    return UInt8(truncatingIfNeeded: (first &+ second &+ 32) >> 6)
                }
                let (newCb, newCr) = (mean(8), mean(20))
                difference |= (cb[column] ^ newCb) | (cr[column] ^ newCr)
                cb[column] = newCb
                cr[column] = newCr
            }
        }
        return difference
    }
}

/// The weighted sum of colours in the format ``PixelFormat/yuv(background:)``, of up to 16 pixels with weights up to 255.
struct ColorSum: BitwiseCopyable {
    private var luma: UInt32 = 0
    private var cb: UInt32 = 0
    private var cr: UInt32 = 0
    private var weight: UInt32 = 0

    @inline(__always)
    mutating func add(_ color: UInt32, weight: UInt32) {
        luma &+= (color & 0xff) &* weight
        cb &+= (color >> 8 & 0xfff) &* weight
        cr &+= (color >> 20) &* weight
        self.weight &+= weight
    }

    /// The mean colour; nil if the weights are 0.
    var mean: UInt32? {
        guard weight > 0 else { return nil }
        let half = weight / 2
        return (luma &+ half) / weight | ((cb &+ half) / weight) << 8 | ((cr &+ half) / weight) << 20
    }
}
