import TestSupport

/// Pictures of 96 × 64 pixels with the dither of a palette of greys.
enum DitheredFilm {
    static let width = 96
    static let height = 64

    enum Dither: CaseIterable {
        case diffused
        case ordered
    }

    /// Greys 12 levels apart.
    static let greys: [GIFBuilder.Color] = (0..<22).map { number in
        let level = UInt8(number * 12)
        return (level, level, level)
    }

    private static func nearest(_ value: Double) -> Int { min(max(Int((value / 12).rounded()), 0), 21) }

    /// Reduces a picture to the greys: with Floyd and Steinberg's weights, a Bayer matrix of 8 × 8, or to the nearest.
    static func reduced(_ picture: [Double], _ dither: Dither?) -> [UInt8] {
        var values = picture
        var indices: [UInt8] = []
        for index in values.indices {
            let (x, y) = (index % width, index / width)
            var value = values[index]
            if dither == .ordered {
                let mixed = x ^ y
                let bits = (0..<3).reduce(0) { $0 << 2 | (mixed >> $1 & 1) << 1 | y >> $1 & 1 }
                value += (Double(bits) / 64 - 0.5) * 12
            }
            let chosen = nearest(value)
            indices.append(UInt8(chosen))
            guard dither == .diffused else { continue }
            let error = value - Double(chosen * 12)
            if x + 1 < width { values[index + 1] += error * 7 / 16 }
            guard y + 1 < height else { continue }
            if x > 0 { values[index + width - 1] += error * 3 / 16 }
            values[index + width] += error * 5 / 16
            if x + 1 < width { values[index + width + 1] += error / 16 }
        }
        return indices
    }
}
