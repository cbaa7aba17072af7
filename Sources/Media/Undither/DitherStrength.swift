/// A kind of dither, as measured in pictures.
enum DitherKind: Equatable {
    /// The error of each pixel is spread over its neighbours, as noise with more high than low frequencies.
    case diffused
    /// A repeated threshold matrix in which a few high frequencies stand out. `energy` is the energy of the checkerboard, the
    /// highest frequency. `noise` is the energy of the film's own noise, 0 if not visible. Both are in squared units of an
    /// orthonormal transform.
    case ordered(energy: Float, noise: Float)
}

/// The amplitude of dither per coefficient. Smaller coefficients count as dither.
struct DitherStrength {
    let kind: DitherKind
    /// Thresholds for a reach of one quarter of a level, with seven fractional bits, in rows of coefficients.
    let perReach: [SIMD8<Int16>]
    /// Thresholds that do not depend on the palette.
    let fixed: [SIMD8<Int16>]
    /// Factors for the removed coefficients: 1024 divided by the product of the squared lengths.
    static let weights: [SIMD8<Int16>] = rows { row, column in
        1024 / (TransformBlock.scale[row] * TransformBlock.scale[column])
    }

    /// The ratio of the noise's amplitude to the distance of palette neighbours, times the factor above which a coefficient is
    /// not noise. Found by trials on dithered films.
    private static let amplitude: Float = 0.36

    init(_ kind: DitherKind) {
        self.kind = kind
        var amplitude = Self.amplitude / Float(PaletteReach.unit) * 128
        var pattern: (energy: Float, noise: Float) = (0, 0)
        if case .ordered(let energy, let noise) = kind {
            pattern = (min(energy, 160), noise)
            // The noise belongs to the film: only the frequencies in which the matrix exceeds it are filtered.
            if noise > 0 { amplitude = 0 }
        }
        perReach = Self.rows { row, column in
            row + column == 0 ? 0 : amplitude * Self.length(row, column) * Self.slope(row, column)
        }
        fixed = Self.rows { row, column in
            let energy = pattern.energy * Self.pattern(row, column)
            return energy > pattern.noise ? 1.4 * energy.squareRoot() * Self.length(row, column) : 0
        }
    }

    /// Returns the ratio of a coefficient to that of an orthonormal transform.
    private static func length(_ row: Int, _ column: Int) -> Float {
        (TransformBlock.scale[row] * TransformBlock.scale[column]).squareRoot()
    }

    /// Diffused errors have little energy in low frequencies.
    private static func slope(_ row: Int, _ column: Int) -> Float {
        let radius = (Float(row * row + column * column) / 98).squareRoot()
        return (0.4 + 1.2 * radius).squareRoot()
    }

    /// Returns the energy of an 8 × 8 threshold matrix in a coefficient, relative to the highest frequency, as measured.
    private static func pattern(_ row: Int, _ column: Int) -> Float {
        switch (min(row, column), max(row, column)) {
        case (7, 7): 1
        case (0, 7): 0.33
        case (5, 7): 0.12
        case (1, 7), (3, 7), (5, 5), (3, 3): 0.035
        case (0, 1), (1, 1), (0, 5), (0, 3), (1, 3): 0.025
        default: 0
        }
    }

    private static func rows(_ value: (_ row: Int, _ column: Int) -> Float) -> [SIMD8<Int16>] {
        (0..<8).map { row in
            var result = SIMD8<Int16>()
            for column in 0..<8 { result[column] = Int16(value(row, column).rounded()) }
            return result
        }
    }
}
