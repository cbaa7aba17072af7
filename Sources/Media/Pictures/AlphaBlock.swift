/// A block of up to 16 × 16 pixels on its way from colours with alpha to planes.
///
/// A transparent pixel gets the mean of the visible ones in the smallest square around it that has any: of 2, 4, 8 or 16 pixels.
/// Chroma, which the pixels of a square of 2 share, is thereby that of the visible ones. Not thread-safe.
final class AlphaBlock {
    static let side = 16

    /// The position in the picture, and the size, both even. Blocks at the right and lower edge may be smaller than others.
    private var x = 0
    private var y = 0
    private var width = 0
    private var height = 0
    /// Pixels of the format ``PixelFormat/yuv(background:)``, in rows of 16.
    private let words: HeapBuffer<UInt32>
    private let alpha: HeapBuffer<UInt8>
    /// The squares of 2 pixels, then those of 4, of 8 and of 16.
    private let squares: HeapBuffer<ColorSum>
    private let means: HeapBuffer<UInt32>
    /// The first square of each size.
    private static let levels = [0, 64, 80, 84]

    init() throws(TranscodeError) {
        let count = Self.side * Self.side
        words = try HeapBuffer(count: count)
        alpha = try HeapBuffer(count: count)
        squares = try HeapBuffer(count: 85)
        means = try HeapBuffer(count: 85)
        words.base.initialize(repeating: 0, count: count)
        alpha.base.initialize(repeating: 0, count: count)
        squares.base.initialize(repeating: ColorSum(), count: 85)
        means.base.initialize(repeating: 0, count: 85)
    }

    /// Reads the block at a position. Beyond an odd edge, the last column or row is repeated.
    ///
    /// - Returns: The mean colour of the visible pixels; nil without one.
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
        if visible > 0 && visible < width * height { fillTransparent() }
        return sum.mean
    }

    /// Makes a block of one colour, without a change of ``alpha``.
    func fill(_ color: UInt32, _ view: PixelView, x: Int, y: Int) {
        place(view, x: x, y: y)
        words.base.update(repeating: color, count: Self.side * Self.side)
    }

    private func place(_ view: PixelView, x: Int, y: Int) {
        self.x = x
        self.y = y
        width = min(Self.side, (view.width + 1) & ~1 - x)
        height = min(Self.side, (view.height + 1) & ~1 - y)
    }

    /// Gives each transparent pixel the colour of the visible ones around it.
    private func fillTransparent() {
        squares.base.update(repeating: ColorSum(), count: 85)
        for row in 0..<height {
            for column in 0..<width {
                let index = row * Self.side + column
                let weight = UInt32(alpha.base[index])
                if weight > 0 { squares.base[row / 2 * 8 + column / 2].add(words.base[index], weight: weight) }
            }
        }
        for level in 1..<Self.levels.count {
            let side = 16 >> (level + 1)
            for index in 0..<side * side {
                let first = Self.levels[level - 1] + index / side * 4 * side + index % side * 2
                for part in [first, first + 1, first + 2 * side, first + 2 * side + 1] {
                    squares.base[Self.levels[level] + index].add(squares.base[part])
                }
            }
        }
        // From the largest square to the smallest: one without a visible pixel takes the mean of the square around it.
        for level in Self.levels.indices.reversed() {
            let side = 16 >> (level + 1)
            for index in 0..<side * side {
                let around = level == 3 ? 84 : Self.levels[level + 1] + index / side / 2 * (side / 2) + index % side / 2
                means.base[Self.levels[level] + index] =
                    squares.base[Self.levels[level] + index].mean ?? means.base[around]
            }
        }
        for row in 0..<height {
            for column in 0..<width where alpha.base[row * Self.side + column] == 0 {
                words.base[row * Self.side + column] = means.base[row / 2 * 8 + column / 2]
            }
        }
    }

    /// Writes alpha. Returns bits that are set where a sample changed.
    func storeAlpha(_ plane: PixelConverter.AlphaPlane) -> UInt8 {
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

    /// Writes luma, and for each square of 2 pixels the rounded mean of their chroma. Returns bits that are set where a sample
    /// changed.
    func storeColors(_ planes: PixelConverter.Planes) -> UInt8 {
        var difference: UInt8 = 0
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

/// The weighted sum of colours of the format ``PixelFormat/yuv(background:)``, of up to 256 pixels with weights up to 255.
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

    mutating func add(_ other: ColorSum) {
        luma &+= other.luma
        cb &+= other.cb
        cr &+= other.cr
        weight &+= other.weight
    }

    /// The mean; nil without a colour.
    var mean: UInt32? {
        guard weight > 0 else { return nil }
        let half = weight / 2
        return (luma &+ half) / weight | ((cb &+ half) / weight) << 8 | ((cr &+ half) / weight) << 20
    }
}
