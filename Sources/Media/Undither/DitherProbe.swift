/// Distinguishes dither from texture, edges and drawings by measurement, and remembers the evidence of earlier frames.
///
/// Blocks of 8 × 8 pixels are transformed. Ordered dither shows in the checkerboard, whose energy is many times that of its
/// neighbours. Diffused errors show in smooth blocks. They have the energy that the palette's distances explain, with 1.3 to 2
/// times as much in high as in middle frequencies, or equally much if the film has a little noise. Textures, edges, bands and
/// the noise of a film without dither have less in high frequencies. Stronger noise exceeds the energy that the palette
/// explains.
struct DitherProbe {
    /// The dither of the pictures so far; nil for none.
    private(set) var kind: DitherKind?

    private var blocks: Float = 0
    /// Smooth blocks with the energy of dither: those with more high than middle energy, and the sums of both energies.
    private var noisy: Float = 0
    private var high: Float = 0
    private var middle: Float = 0
    /// Blocks without strong edges, and the sums of their energies: of the checkerboard, of the coefficient beside it, and the
    /// energy that the palette explains.
    private var plain: Float = 0
    private var checkerboard: Float = 0
    private var beside: Float = 0
    private var explained: Float = 0
    /// Uneven blocks, and those that repeat every two pixels in both directions. The latter count only in frames with at most
    /// two such patterns.
    private var uneven: Float = 0
    private var regular: Float = 0
    private var frames = 0

    private static let side = 8
    /// In later frames, one block in this many is examined.
    private static let sparseness = 4
    /// The share of the evidence that is kept from frame to frame.
    private static let memory: Float = 0.9
    /// The minimum number of blocks for a decision.
    private static let fewest: Float = 6
    /// The energy of diffused errors per coefficient, divided by the squared lightness distance of palette neighbours.
    private static let noisePerReach: Float = 0.108
    /// The smallest checkerboard energy that counts as a pattern: an amplitude of 0.43 levels.
    private static let faintest: Float = 12
    /// The most patterns in a drawing. A dithered film has more: one per level of light.
    private static let mostPatterns = 2

    /// The least and the greatest word of a block that repeats every two pixels.
    private struct Pattern: Equatable {
        let least: UInt32
        let greatest: UInt32
    }

    /// Examines a picture.
    mutating func look(at canvas: borrowing Canvas, _ reach: borrowing PaletteReach) {
        for value in [
            \DitherProbe.blocks, \.noisy, \.high, \.middle, \.plain, \.checkerboard, \.beside, \.explained, \.uneven, \.regular,
        ] {
            self[keyPath: value] *= Self.memory
        }
        let step = frames == 0 ? 1 : Self.sparseness
        var number = frames
        frames += 1
        let samples = UnsafeMutablePointer<Int16>.allocate(capacity: Self.side * Self.side)
        defer { samples.deallocate() }
        let tables = BandTables.shared
        var regularBlocks: Float = 0
        var patterns: [Pattern] = []
        for top in stride(from: 0, to: canvas.height - Self.side + 1, by: Self.side) {
            for left in stride(from: 0, to: canvas.width - Self.side + 1, by: Self.side) {
                number += 1
                if number % step != 0 { continue }
                let sum = Self.read(canvas, x: left, y: top, reach, into: samples)
                blocks += 1
                // Blocks of a single colour, or that no palette explains, are no evidence.
                guard sum.reach > 0, sum.isUneven else { continue }
                uneven += 1
                if let pattern = sum.pattern {
                    regularBlocks += 1
                    if patterns.count <= Self.mostPatterns && !patterns.contains(pattern) { patterns.append(pattern) }
                }
                // In levels of lightness.
                let reach = canvas.format.lightnessRange * Float(sum.reach) / Float(64 * PaletteReach.unit)
                weigh(tables.energies(samples), meanReach: reach)
            }
        }
        if patterns.count <= Self.mostPatterns { regular += regularBlocks }
        decide()
    }

    private mutating func weigh(_ energy: BandEnergies, meanReach: Float) {
        let expected = Self.noisePerReach * meanReach * meanReach + 0.001
        if energy.low < 60 && energy.high > 0.1 {
            plain += 1
            explained += expected
            checkerboard += energy.checkerboard
            beside += energy.beside
        }
        guard energy.low < 8 * expected, energy.high > 0.4 * expected, energy.high < 3 * expected else { return }
        high += energy.high
        middle += energy.middle
        if energy.high > energy.middle { noisy += 1 }
    }

    /// Decides from the evidence. An earlier finding is dropped only when there is much less evidence.
    private mutating func decide() {
        let wasOrdered = if case .ordered = kind { true } else { false }
        let contrast: Float = wasOrdered ? 3 : 5
        // A drawing with a checkerboard or stripes of one pixel.
        if regular > (kind == nil ? 0.5 : 0.7) * uneven {
            kind = nil
            return
        }
        if plain >= max(Self.fewest, 0.01 * blocks), checkerboard > contrast * beside,
            checkerboard > (wasOrdered ? 0.6 : 1) * Self.faintest * plain
        {
            kind = .ordered(energy: Self.step(checkerboard / plain), noise: isFilmNoisy ? Self.step(beside / plain) : 0)
            return
        }
        let wasDiffused = kind == .diffused
        // The noise of films with little texture has 0.88 of the middle energy, and generated photographs have 0.87.
        if noisy >= max(Self.fewest, (wasDiffused ? 0.01 : 0.03) * blocks), high > (wasDiffused ? 0.7 : 0.94) * middle {
            kind = .diffused
        } else {
            kind = nil
        }
    }

    /// Whether blocks have more energy beside the pattern than the palette explains. Films without noise have 0.5 to 1.2 times
    /// that energy, and films with noise of six levels 10 to 13 times.
    private var isFilmNoisy: Bool {
        let wasNoisy = if case .ordered(_, let noise) = kind { noise > 0 } else { false }
        return beside > (wasNoisy ? 3 : 4) * explained
    }

    /// Rounds to powers of √2, so that small changes of the energy do not change the picture.
    ///
    /// Uses no logarithms: those of the C library differ in the last bit from machine to machine.
    private static func step(_ energy: Float) -> Float {
        guard energy.isNormal, energy > 0 else { return 0 }
        let (root, quarter) = (Float(2).squareRoot(), Float(2).squareRoot().squareRoot())
        let power = Float(sign: .plus, exponent: energy.exponent, significand: 1)
        // On a logarithmic scale, the midpoints between steps are odd powers of the fourth root of 2.
        if energy.significand < quarter { return power }
        return energy.significand < root * quarter ? power * root : power * 2
    }

    /// Reads the lightness of a block, and sums its reach.
    @inline(__always)
    private static func read(
        _ canvas: borrowing Canvas, x: Int, y: Int, _ reach: borrowing PaletteReach, into samples: UnsafeMutablePointer<Int16>
    ) -> (reach: Int32, isUneven: Bool, pattern: Pattern?) {
        var sum: Int32 = 0
        let first = canvas.pixels[y * canvas.width + x]
        var difference: UInt32 = 0
        var irregularity: UInt32 = 0
        for row in 0..<side {
            let words = canvas.pixels + ((y + row) * canvas.width + x)
            let pair = canvas.pixels + ((y + (row & 1)) * canvas.width + x)
            for column in 0..<side {
                let word = words[column]
                difference |= word ^ first
                irregularity |= word ^ pair[column & 1]
                sum &+= reach.lookUp(word)
                samples[row &* side &+ column] = canvas.format.lightness(word) &- 128
            }
        }
        guard irregularity == 0 else { return (sum, difference != 0, nil) }
        let second = canvas.pixels + ((y + 1) * canvas.width + x)
        let words = [first, canvas.pixels[y * canvas.width + x + 1], second[0], second[1]]
        return (sum, difference != 0, Pattern(least: words.min() ?? 0, greatest: words.max() ?? 0))
    }
}

extension DitherProbe {
    /// Whether there is dither on a film without visible noise of its own.
    var isFilmDither: Bool {
        switch kind {
        case .diffused: true
        case .ordered(_, let noise): noise == 0
        case nil: false
        }
    }

    /// The evidence of the pictures so far.
    var evidence: DitherEvidence {
        DitherEvidence(
            pictures: 1, dithered: isFilmDither ? 1 : 0, share: (kind == .diffused ? noisy : plain) / max(1, blocks))
    }
}

/// Mean energies of a block's coefficients, in squared levels of an orthonormal transform.
struct BandEnergies {
    var low: Float = 0
    var middle: Float = 0
    var high: Float = 0
    /// The energy of the highest frequency.
    var checkerboard: Float = 0
    /// The energy of a coefficient near the highest, which threshold matrices lack.
    var beside: Float = 0
}

/// The weights of the coefficients in each mean.
private struct BandTables {
    static let shared = BandTables()

    private let low: [SIMD8<Float>]
    private let middle: [SIMD8<Float>]
    private let high: [SIMD8<Float>]

    private init() {
        func table(_ sums: ClosedRange<Int>) -> [SIMD8<Float>] {
            let count = (0..<64).count { sums.contains($0 / 8 + $0 % 8) }
            return (0..<8).map { row in
                var weights = SIMD8<Float>()
                for column in 0..<8 where sums.contains(row + column) {
                    weights[column] = 1 / (TransformBlock.scale[row] * TransformBlock.scale[column] * Float(count))
                }
                return weights
            }
        }
        low = table(1...3)
        middle = table(4...8)
        high = table(9...14)
    }

    func energies(_ samples: UnsafePointer<Int16>) -> BandEnergies {
        var block = TransformBlock(samples, stride: 8)
        block.forward()
        let r = block.rows
        var result = BandEnergies()
        for (index, row) in [r.0, r.1, r.2, r.3, r.4, r.5, r.6, r.7].enumerated() {
            let values = SIMD8<Float>(row)
            let squares = values * values
            result.low += (squares * low[index]).sum()
            result.middle += (squares * middle[index]).sum()
            result.high += (squares * high[index]).sum()
            if index == 7 { result.checkerboard = squares[7] / (TransformBlock.scale[7] * TransformBlock.scale[7]) }
            if index == 6 { result.beside = squares[6] / (TransformBlock.scale[6] * TransformBlock.scale[6]) }
        }
        return result
    }
}

extension PixelFormat {
    /// The ratio of the range of ``lightness(_:)`` to that of red, green and blue.
    fileprivate var lightnessRange: Float { if case .rgba = self { 1 } else { 219 / 255 } }

    /// The luma of a pixel, 0…255.
    @inline(__always)
    func lightness(_ word: UInt32) -> Int16 {
        switch self {
        case .yuv: Int16(truncatingIfNeeded: word & 0xff)
        case .rgba:
            Int16(truncatingIfNeeded: (54 &* (word & 0xff) &+ 183 &* (word >> 8 & 0xff) &+ 19 &* (word >> 16 & 0xff)) >> 8)
        }
    }
}
