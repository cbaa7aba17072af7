/// The evidence of dither in several pictures of an animation.
struct DitherEvidence {
    /// The examined pictures, and those that have dither but no noise of their own.
    var pictures = 0
    var dithered = 0
    /// The sum, over the pictures, of the share of blocks that show dither.
    var share: Float = 0
    /// The sum, over the pictures, of the share of pixels with one of the picture's eight most frequent colours.
    var concentration: Float = 0

    mutating func add(_ other: DitherEvidence) {
        pictures += other.pictures
        dithered += other.dithered
        share += other.share
        concentration += other.concentration
    }

    /// The smallest mean share of blocks that show dither.
    private static let leastShare: Float = 0.05
    /// The largest mean concentration of a film. Drawings and pages that were dithered when recorded have large areas of few
    /// colours.
    private static let mostConcentration: Float = 0.57
    /// The limit for palettes of at most ``smallPalette`` colours. The fewer colours there are, the more frequent each is.
    private static let mostConcentrationOfSmallPalette: Float = 0.68
    private static let smallPalette = 64

    /// Whether a film certainly has dither: every picture shows dither, and the pictures are not drawings.
    func isCertain(paletteColors: Int) -> Bool {
        let count = Float(pictures)
        let most = paletteColors <= Self.smallPalette ? Self.mostConcentrationOfSmallPalette : Self.mostConcentration
        return pictures > 0 && dithered == pictures && share >= Self.leastShare * count && concentration <= most * count
    }
}

/// How the pixels of a picture are distributed over its colours.
enum ColorConcentration {
    /// The number of colours that count as the most frequent.
    private static let most = 8
    /// The pixels that are examined.
    private static let samples = 20_000

    /// The share of the pixels that have one of the most frequent colours.
    static func share(of canvas: borrowing Canvas) -> Float {
        let count = canvas.width * canvas.height
        // An odd step is rarely a multiple of the row length, which would sample a single column.
        let step = max(1, count / samples) | 1
        var counts: [UInt32: Int] = [:]
        var seen = 0
        for index in stride(from: 0, to: count, by: step) {
            counts[canvas.pixels[index], default: 0] += 1
            seen += 1
        }
        let largest = counts.values.sorted(by: >).prefix(most)
        return Float(largest.reduce(0, +)) / Float(max(1, seen))
    }
}

/// The detail of a film, which masks encoding errors.
enum FilmDetail {
    private static let side = 2

    /// Returns the mean squared difference in lightness between adjacent areas of 2 × 2 pixels, in levels. Averaging removes
    /// almost all dither, so the result hardly depends on the kind of dither.
    static func energy(of canvas: borrowing Canvas) -> Double {
        let (columns, rows) = (canvas.width / side, canvas.height / side)
        guard columns > 1, rows > 0 else { return 0 }
        var sum = 0
        for row in 0..<rows {
            var last = lightness(of: canvas, column: 0, row: row)
            for column in 1..<columns {
                let next = lightness(of: canvas, column: column, row: row)
                sum += (next - last) * (next - last)
                last = next
            }
        }
        return Double(sum) / Double((columns - 1) * rows * side * side * side * side)
    }

    /// Returns the sum of the lightness of an area's pixels.
    private static func lightness(of canvas: borrowing Canvas, column: Int, row: Int) -> Int {
        let upper = canvas.pixels + (row * side * canvas.width + column * side)
        let lower = upper + canvas.width
        return Int(canvas.format.lightness(upper[0]) + canvas.format.lightness(upper[1]))
            + Int(canvas.format.lightness(lower[0]) + canvas.format.lightness(lower[1]))
    }
}
