/// Measures the colour loss of 4:2:0: the distance of each pixel's chroma from the mean of its 2 × 2 square.
///
/// Coloured lines and letters lose most. Films, gradients and grey pictures lose next to nothing. 4:2:0 keeps the means of the
/// squares at even positions. Many players interpolate between these means, which mixes the colours on both sides of an edge
/// between two squares. Pixels that were enlarged by an even factor lose nothing in the first step and much in the second.
/// Therefore, squares at odd positions are measured, too, and the larger loss counts.
struct ChromaProbe {
    /// The sums of the squared distances in squares at even and odd positions, in squared 8-bit levels.
    private var (even, odd) = (0.0, 0.0)
    /// The number of examined pixels.
    private var pixels = 0

    private var loss: Double { max(even, odd) }

    /// The mean squared distance above which the loss is visible.
    private static let visible = 5.0

    /// The mean squared distance above which colours differ from pixel to pixel, as noise does. Files with full chroma then
    /// have two to three times the bytes.
    private static let noise = 65.0

    var isVisible: Bool { pixels > 0 && loss > Self.visible * Double(pixels) }

    var isNoise: Bool { loss > Self.noise * Double(pixels) }

    /// Examines a block of a canvas in the format ``PixelFormat/rgba``.
    ///
    /// - Parameters:
    ///   - background: The colour of transparent pixels, as a word of the canvas.
    ///   - weight: The number of blocks that the block represents.
    mutating func look(at canvas: borrowing Canvas, _ block: Rectangle, background: UInt32, weight: Int) {
        even += Double(weight) * Self.loss(canvas, block, from: 0, background)
        odd += Double(weight) * Self.loss(canvas, block, from: 1, background)
        pixels += block.width * block.height * weight
    }

    /// Returns the sum of the squared distances in the squares that begin `offset` pixels from a block's corner.
    private static func loss(
        _ canvas: borrowing Canvas, _ block: Rectangle, from offset: Int, _ background: UInt32
    ) -> Double {
        var sum: UInt64 = 0
        for y in stride(from: block.y + offset, to: min(block.maxY + offset, canvas.height) - 1, by: 2) {
            let upper = canvas.pixels + y * canvas.width
            let lower = upper + canvas.width
            for x in stride(from: block.x + offset, to: min(block.maxX + offset, canvas.width) - 1, by: 2) {
                let words = (upper[x], upper[x + 1], lower[x], lower[x + 1])
                if words.0 == words.1 && words.0 == words.2 && words.0 == words.3 { continue }
                var colors = SIMD4(words.0, words.1, words.2, words.3)
                colors.replace(with: background, where: colors .< PixelFormat.opaque)
                let yuv = PixelFormat.yuv(SIMD8(lowHalf: colors, highHalf: colors)).lowHalf
                sum += distance(yuv &>> 8 & 0xfff) + distance(yuv &>> 20)
            }
        }
        // Chroma has four fractional bits.
        return Double(sum) / 256
    }

    /// Returns the sum of the squared distances of four values from their mean.
    @inline(__always)
    private static func distance(_ values: SIMD4<UInt32>) -> UInt64 {
        let sum = values.wrappedSum()
        let squares = (values &* values).wrappedSum()
        return UInt64(squares &- sum &* sum / 4)
    }
}
