/// An RGB colour space, defined by its primaries, white point and transfer function.
struct ColorSpace {
    /// A chromaticity (CIE 1931 x and y).
    struct Point {
        let x: Double
        let y: Double

        init(_ x: Double, _ y: Double) {
            self.x = x
            self.y = y
        }

        /// Whether a colour can have this chromaticity.
        var isValid: Bool { (0...1).contains(x) && (0...1).contains(y) }
    }

    struct Primaries {
        let red: Point
        let green: Point
        let blue: Point
        let white: Point

        static let sRGB = Primaries(red: Point(0.64, 0.33), green: Point(0.3, 0.6), blue: Point(0.15, 0.06), white: .d65)
        /// SMPTE ST 170.
        static let smpteC = Primaries(red: Point(0.63, 0.34), green: Point(0.31, 0.595), blue: Point(0.155, 0.07), white: .d65)

        /// The luma coefficients of red and blue (ITU-T H.273 equations 32 to 37).
        var lumaCoefficients: (red: Double, blue: Double) {
            /// Returns twice the signed area of a triangle of chromaticities.
            func area(_ a: Point, _ b: Point, _ c: Point) -> Double {
                a.x * (b.y - c.y) + b.x * (c.y - a.y) + c.x * (a.y - b.y)
            }
            let whole = area(red, green, blue) * white.y
            return (red.y * area(white, green, blue) / whole, blue.y * area(red, green, white) / whole)
        }
    }

    /// The transfer function from a sample to light.
    enum Transfer {
        /// The sample raised to a power.
        case power(Double)
        case sRGB
        /// SMPTE ST 428-1.
        case cinema
        /// SMPTE ST 240.
        case smpte240
    }

    let primaries: Primaries
    let transfer: Transfer

    init(_ primaries: Primaries, _ transfer: Transfer) {
        self.primaries = primaries
        self.transfer = transfer
    }

    /// Creates the colour space of ITU-T H.273 code points. Nil for code points that Chromium does not support either.
    ///
    /// Chromium treats primaries 6 and 7 as those of sRGB, and displays BT.709 with a gamma of 2.4 (BT.1886).
    init?(primaries: UInt8, transfer: UInt8) {
        switch primaries {
        case 1, 6, 7: self.primaries = .sRGB
        case 4: self.primaries = Primaries(red: Point(0.67, 0.33), green: Point(0.21, 0.71), blue: Point(0.14, 0.08), white: .c)
        case 5:
            self.primaries = Primaries(red: Point(0.64, 0.33), green: Point(0.29, 0.6), blue: Point(0.15, 0.06), white: .d65)
        case 8:
            self.primaries = Primaries(
                red: Point(0.681, 0.319), green: Point(0.243, 0.692), blue: Point(0.145, 0.049), white: .c)
        case 9:
            self.primaries = Primaries(
                red: Point(0.708, 0.292), green: Point(0.17, 0.797), blue: Point(0.131, 0.046), white: .d65)
        case 10: self.primaries = Primaries(red: Point(1, 0), green: Point(0, 1), blue: Point(0, 0), white: .e)
        case 11:
            self.primaries = Primaries(
                red: Point(0.68, 0.32), green: Point(0.265, 0.69), blue: Point(0.15, 0.06), white: .cinema)
        case 12:
            self.primaries = Primaries(red: Point(0.68, 0.32), green: Point(0.265, 0.69), blue: Point(0.15, 0.06), white: .d65)
        case 22:
            self.primaries = Primaries(
                red: Point(0.63, 0.34), green: Point(0.295, 0.605), blue: Point(0.155, 0.077), white: .d65)
        default: return nil
        }
        switch transfer {
        case 1, 6, 11, 14, 15: self.transfer = .power(2.4)
        case 4: self.transfer = .power(2.2)
        case 5: self.transfer = .power(2.8)
        case 7, 13: self.transfer = .sRGB
        case 8: self.transfer = .power(1)
        case 17: self.transfer = .cinema
        default: return nil
        }
    }
}

extension ColorSpace.Point {
    fileprivate static let c = Self(0.31, 0.316)
    fileprivate static let d65 = Self(0.3127, 0.329)
    fileprivate static let e = Self(1.0 / 3, 1.0 / 3)
    fileprivate static let cinema = Self(0.314, 0.351)
}
