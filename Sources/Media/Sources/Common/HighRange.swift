/// Converts PQ and HLG samples (ITU-R BT.2100), whose light exceeds paper white, to sRGB.
///
/// The result is that of Chromium on an SDR screen, measured by showing it files. In BT.2020 colours, paper white of 203 cd/m²
/// (ITU-R BT.2408) gets half of the screen's light. Lighter values are compressed, so that 1000 cd/m² gets all of it. The
/// largest of a pixel's three colours determines the compression.
struct HighRange {
    /// The light of each sample value: for PQ in units of paper white, for HLG scene light.
    private let light: [Double]
    private let isHLG: Bool
    /// Bits per sample in a word.
    let bits: Int
    /// The conversion from the primaries to BT.2020, by rows.
    private let matrix: [Double]
    /// The sRGB samples by light.
    private let samples: [UInt8]
    /// The factor from scene light to the light of a 1000 cd/m² screen, by luminance (OOTF, ITU-R BT.2100 table 5).
    private let systemGain = LightTable(octaves: -20..<1) { lightest * PortableMath.pow($0, 0.2) }
    private let gains = LightTable(octaves: 0..<3, gain)

    /// The light of 1000 cd/m², in units of paper white.
    private static let lightest = 1000.0 / 203
    private static let steps = 16_384.0

    /// Creates a conversion for ITU-T H.273 code points. Nil for other transfer functions, and for primaries not used in HDR.
    ///
    /// - Parameter bits: Bits per sample in the words to convert: 8, or 10 for words without alpha. Eight bits are too few for
    ///   the dark colours of PQ and the light colours of HLG.
    init?(primaries: UInt8, transfer: UInt8, bits: Int = 8) {
        self.bits = bits
        let levels = 1 << bits
        switch primaries {
        case 1, 6, 7:
            matrix = [0.627_404, 0.329_283, 0.043_313, 0.069_097, 0.919_540, 0.011_362, 0.016_391, 0.088_013, 0.895_595]
        case 9: matrix = [1, 0, 0, 0, 1, 0, 0, 0, 1]
        case 12:
            matrix = [0.753_833, 0.198_597, 0.047_570, 0.045_744, 0.941_777, 0.012_479, -0.001_210, 0.017_602, 0.983_609]
        default: return nil
        }
        switch transfer {
        case 16: light = (0..<levels).map { Self.perceptual(Double($0) / Double(levels - 1)) }
        case 18: light = (0..<levels).map { Self.hybrid(Double($0) / Double(levels - 1)) }
        default: return nil
        }
        isHLG = transfer == 18
        samples = (0...Int(Self.steps)).map { step in
            UInt8((255 * PortableMath.sRGB(linear: Double(step) / Self.steps)).rounded())
        }
    }

    /// Returns the light of a PQ sample.
    private static func perceptual(_ sample: Double) -> Double {
        let root = PortableMath.pow(sample, 1 / 78.84375)
        return 10_000 / 203
            * PortableMath.pow(max(0, root - 0.8359375) / (18.8515625 - 18.6875 * root), 1 / 0.159_301_757_812_5)
    }

    /// Returns the scene light of an HLG sample (inverse OETF).
    private static func hybrid(_ sample: Double) -> Double {
        sample <= 0.5 ? sample * sample / 3 : (PortableMath.exp((sample - 0.559_910_73) / 0.178_832_77) + 0.284_668_92) / 12
    }

    /// Returns the factor for the light of a pixel whose largest colour has `light`.
    private static func gain(_ light: Double) -> Double {
        if light <= 1 { return 0.5 }
        if light >= lightest { return 1 / light }
        let octaves = PortableMath.log2(light)
        // Fitted to within a level of 255.
        let slope = -0.106_490 + octaves * (-0.487_684 + octaves * (0.206_365 - 0.035_496 * octaves))
        return PortableMath.exp2(octaves * slope - 1)
    }

    /// Converts R, G, B words in place. 8-bit words keep their alpha; 10-bit words become opaque 8-bit words.
    func convert(_ words: UnsafeMutableBufferPointer<UInt32>) {
        let colors: UInt32 = bits == 8 ? 0xff_ffff : .max
        let opaque: UInt32 = bits == 8 ? 0 : 0xff00_0000
        var (last, result): (UInt32, UInt32) = (0, converted(0))
        for index in words.indices {
            let color = words[index] & colors
            // Neighbours are often alike.
            if color != last { (last, result) = (color, converted(color)) }
            words[index] = words[index] & ~colors | opaque | result
        }
    }

    private func converted(_ word: UInt32) -> UInt32 {
        let highest = light.count - 1
        let (r, g, b) = (
            light[Int(word) & highest], light[Int(word) >> bits & highest], light[Int(word) >> (2 * bits) & highest]
        )
        var red = matrix[0] * r + matrix[1] * g + matrix[2] * b
        var green = matrix[3] * r + matrix[4] * g + matrix[5] * b
        var blue = matrix[6] * r + matrix[7] * g + matrix[8] * b
        var factor = 1.0
        if isHLG {
            // The OOTF of a 1000 cd/m² screen.
            let luminance = 0.2627 * red + 0.678 * green + 0.0593 * blue
            factor = systemGain[luminance]
        }
        let brightest = factor * max(red, green, blue)
        factor *= brightest <= 1 ? 0.5 : brightest >= Self.lightest ? 1 / brightest : gains[brightest]
        (red, green, blue) = (factor * red, factor * green, factor * blue)
        return sample(1.660_491 * red - 0.587_641 * green - 0.072_850 * blue)
            | sample(-0.124_550 * red + 1.132_900 * green - 0.008_349 * blue) << 8
            | sample(-0.018_151 * red - 0.100_579 * green + 1.118_730 * blue) << 16
    }

    private func sample(_ light: Double) -> UInt32 {
        UInt32(samples[Int((max(0, min(1, light)) * Self.steps).rounded())])
    }
}

/// A tabulated function of light, with evenly spaced, interpolated entries in each octave. Computing powers and logarithms for
/// each pixel would take longer than decoding it.
private struct LightTable {
    private let values: [Double]
    /// The bits that select the first entry.
    private let first: UInt64

    /// The number of low bits that do not select an entry: an octave has 256 entries.
    private static let fractionBits: UInt64 = 52 - 8
    private static let fractionMask = (UInt64(1) << fractionBits) - 1
    private static let fractionUnit = 1 / Double(UInt64(1) << fractionBits)

    /// - Parameter octaves: Exponents of 2. Light outside their range is clamped.
    init(octaves: Range<Int>, _ function: (Double) -> Double) {
        let start = PortableMath.exp2(Double(octaves.lowerBound)).bitPattern >> Self.fractionBits
        first = start
        values = (0...octaves.count << 8).map { function(Double(bitPattern: (start + UInt64($0)) << Self.fractionBits)) }
    }

    subscript(_ light: Double) -> Double {
        // Light below the first entry has a smaller bit pattern than any entry; negative light has a larger one.
        guard light > 0 else { return values[0] }
        let bits = light.bitPattern
        let entry = bits >> Self.fractionBits
        guard entry >= first else { return values[0] }
        let index = Int(entry - first)
        guard index + 1 < values.count else { return values[values.count - 1] }
        let (low, high) = (values[index], values[index + 1])
        return low + Double(bits & Self.fractionMask) * Self.fractionUnit * (high - low)
    }
}
