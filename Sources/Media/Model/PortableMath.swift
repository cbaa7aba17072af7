/// Logarithms, powers and cosines with the same result on every machine. They use only additions, multiplications and
/// divisions, which IEEE 754 rounds exactly. The last bits of the C library's functions depend on its version, and the bytes of
/// a file must not.
///
/// The results are within 2 ULP of the true values, or within 1e-15 for values below 1.
enum PortableMath {
    /// Returns the base-2 logarithm of a positive, finite number.
    static func log2(_ x: Double) -> Double {
        precondition(x > 0 && x.isFinite)
        var (exponent, mantissa) = (Double(x.exponent), x.significand)
        if mantissa > 1.414_213_562_373_095 {
            mantissa /= 2
            exponent += 1
        }
        // ln m = 2 artanh((m - 1) / (m + 1)), whose argument is below 0.172.
        let ratio = (mantissa - 1) / (mantissa + 1)
        let square = ratio * ratio
        var sum = 0.0
        for power in stride(from: 21.0, through: 1, by: -2) { sum = sum * square + 1 / power }
        return exponent + 2 * ratio * sum / ln2
    }

    /// 2 to the power of `y`, for an `y` from -1000 to 1000.
    static func exp2(_ y: Double) -> Double {
        precondition(abs(y) <= 1000)
        let whole = y.rounded()
        let rest = (y - whole) * ln2
        var sum = 1.0
        // The power series; the rest is at most 0.35.
        for term in stride(from: 16.0, through: 1, by: -1) { sum = 1 + sum * rest / term }
        return Double(sign: .plus, exponent: Int(whole), significand: sum)
    }

    static func exp(_ y: Double) -> Double { exp2(y / ln2) }

    /// `x` to the power of `y`; 0 for a base that is not positive.
    static func pow(_ x: Double, _ y: Double) -> Double { x > 0 ? exp2(y * log2(x)) : 0 }

    /// The cosine of an angle from 0 to 2^30 half turns (multiples of π).
    static func cosine(halfTurns: Double) -> Double {
        precondition((0...0x1p30).contains(halfTurns))
        // The remainder is exact, and the series needs less than a quarter turn.
        let turn = halfTurns.truncatingRemainder(dividingBy: 2)
        let half = turn > 1 ? 2 - turn : turn
        let (quarter, sign) = half > 0.5 ? (1 - half, -1.0) : (half, 1.0)
        let square = quarter * quarter * (Double.pi * Double.pi)
        var sum = 1.0
        for term in stride(from: 22.0, through: 2, by: -2) { sum = 1 - sum * square / (term * (term - 1)) }
        return sign * sum
    }

    /// Returns the linear light of an sRGB value, both from 0 to 1 (IEC 61966-2-1).
    static func linear(sRGB value: Double) -> Double {
        value <= 0.040_45 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4)
    }

    /// The inverse of ``linear(sRGB:)``.
    static func sRGB(linear light: Double) -> Double {
        light <= 0.003_130_8 ? light * 12.92 : 1.055 * pow(light, 1 / 2.4) - 0.055
    }

    private static let ln2 = 0.693_147_180_559_945_3
}
