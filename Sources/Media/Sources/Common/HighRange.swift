/// Converts samples of PQ and HLG (ITU-R BT.2100), whose light exceeds that of paper, to sRGB.
///
/// The result is Chromium's on a screen of standard range, measured by showing it files: in the colours of BT.2020, white paper of
/// 203 cd/m² (ITU-R BT.2408) has half of the screen's light, and what is lighter is compressed, so that 1000 cd/m² have all of it. The
/// largest of a pixel's three colours decides by how much.
struct HighRange {
    /// The light of each sample: of PQ in units of white paper, of HLG that of the scene.
    private let light: [Double]
    private let isHLG: Bool
    /// From the primaries to those of BT.2020, by rows.
    private let matrix: [Double]
    /// Samples of sRGB by light.
    private let samples: [UInt8]

    /// The light of 1000 cd/m², in units of white paper.
    private static let lightest = 1000.0 / 203
    private static let steps = 16_384.0

    /// A conversion for code points of ITU-T H.273; nil for other transfer functions, and for primaries that HDR does not have.
    init?(primaries: UInt8, transfer: UInt8) {
        switch primaries {
        case 1, 6, 7:
            matrix = [0.627_404, 0.329_283, 0.043_313, 0.069_097, 0.919_540, 0.011_362, 0.016_391, 0.088_013, 0.895_595]
        case 9: matrix = [1, 0, 0, 0, 1, 0, 0, 0, 1]
        case 12:
            matrix = [0.753_833, 0.198_597, 0.047_570, 0.045_744, 0.941_777, 0.012_479, -0.001_210, 0.017_602, 0.983_609]
        default: return nil
        }
        switch transfer {
        case 16: light = (0...255).map { Self.perceptual(Double($0) / 255) }
        case 18: light = (0...255).map { Self.hybrid(Double($0) / 255) }
        default: return nil
        }
        isHLG = transfer == 18
        samples = (0...Int(Self.steps)).map { step in
            let light = Double(step) / Self.steps
            let value = light <= 0.003_130_8 ? 12.92 * light : 1.055 * PortableMath.pow(light, 1 / 2.4) - 0.055
            return UInt8((255 * value).rounded())
        }
    }

    /// The light of a sample of PQ.
    private static func perceptual(_ sample: Double) -> Double {
        let root = PortableMath.pow(sample, 1 / 78.84375)
        return 10_000 / 203
            * PortableMath.pow(max(0, root - 0.8359375) / (18.8515625 - 18.6875 * root), 1 / 0.159_301_757_812_5)
    }

    /// The light that a sample of HLG stands for, before the camera.
    private static func hybrid(_ sample: Double) -> Double {
        sample <= 0.5 ? sample * sample / 3 : (PortableMath.exp((sample - 0.559_910_73) / 0.178_832_77) + 0.284_668_92) / 12
    }

    /// The factor by which the light of a pixel is reduced whose largest colour has `light`.
    private static func gain(_ light: Double) -> Double {
        if light <= 1 { return 0.5 }
        if light >= lightest { return 1 / light }
        let octaves = PortableMath.log2(light)
        // Fitted to within a level of 255.
        let slope = -0.106_490 + octaves * (-0.487_684 + octaves * (0.206_365 - 0.035_496 * octaves))
        return PortableMath.exp2(octaves * slope - 1)
    }

    /// Converts words of R, G, B, A in place. Their alpha stays.
    func convert(_ words: UnsafeMutableBufferPointer<UInt32>) {
        var (last, result): (UInt32, UInt32) = (0, converted(0))
        for index in words.indices {
            let color = words[index] & 0xff_ffff
            // Neighbours are often alike.
            if color != last { (last, result) = (color, converted(color)) }
            words[index] = words[index] & 0xff00_0000 | result
        }
    }

    private func converted(_ word: UInt32) -> UInt32 {
        let (r, g, b) = (light[Int(word & 255)], light[Int(word >> 8 & 255)], light[Int(word >> 16 & 255)])
        var red = matrix[0] * r + matrix[1] * g + matrix[2] * b
        var green = matrix[3] * r + matrix[4] * g + matrix[5] * b
        var blue = matrix[6] * r + matrix[7] * g + matrix[8] * b
        var factor = 1.0
        if isHLG {
            // The display's share of the curve, for a screen of 1000 cd/m².
            let luminance = 0.2627 * red + 0.678 * green + 0.0593 * blue
            factor = Self.lightest * PortableMath.pow(max(0, luminance), 0.2)
        }
        factor *= Self.gain(factor * max(red, green, blue))
        (red, green, blue) = (factor * red, factor * green, factor * blue)
        return sample(1.660_491 * red - 0.587_641 * green - 0.072_850 * blue)
            | sample(-0.124_550 * red + 1.132_900 * green - 0.008_349 * blue) << 8
            | sample(-0.018_151 * red - 0.100_579 * green + 1.118_730 * blue) << 16
    }

    private func sample(_ light: Double) -> UInt32 {
        UInt32(samples[Int((max(0, min(1, light)) * Self.steps).rounded())])
    }
}
