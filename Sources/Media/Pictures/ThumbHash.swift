/// A ThumbHash: about 25 bytes from which a page paints a blur of a picture (github.com/evanw/thumbhash).
///
/// The picture is divided into luminance, two differences of colour and alpha. Each channel is a sum of cosines of low frequency:
/// a constant, and coefficients of 4 bits. Values are in 0…1, or −1…1 for differences.
///
/// The bytes are: 24 bits of constants (luminance 6, yellow–blue 6, red–green 6), the scale of luminance (5) and whether there is
/// alpha (1); 16 bits of the number of cosines along the shorter side (3), the scales of the differences (6 each) and whether the
/// picture is wider than high (1); with alpha, a byte of its constant and its scale (4 each); then all coefficients.
package struct ThumbHash: Sendable, Equatable {
    package let bytes: [UInt8]

    /// The number of bytes of a hash, which depends on the aspect ratio and on alpha.
    static let lengths = 8...28
    /// The longer side of the pictures that are hashed, in pixels: many times the highest frequency.
    static let side = 64

    /// - Returns: Nil if the bytes cannot be a hash.
    package init?(_ bytes: [UInt8]) {
        guard Self.lengths.contains(bytes.count) else { return nil }
        self.bytes = bytes
        guard bytes.count == Layout(self).length else { return nil }
    }

    /// Hashes a picture whose sides are at most ``side``.
    init(_ picture: borrowing StillPicture) {
        let (width, height) = (picture.width, picture.height)
        let channels = Channels(picture)
        let longer = Double(max(width, height))
        let limit = channels.hasAlpha ? 5.0 : 7.0
        let across = max(1, Int((limit * Double(width) / longer).rounded()))
        let down = max(1, Int((limit * Double(height) / longer).rounded()))
        let isLandscape = width > height
        let luminance = Channel(channels.luminance, width, height, max(3, across), max(3, down))
        let blue = Channel(channels.blue, width, height, 3, 3)
        let red = Channel(channels.red, width, height, 3, 3)
        let alpha = channels.hasAlpha ? Channel(channels.alpha, width, height, 5, 5) : nil

        var first = Self.quantized(luminance.constant, 63)
        first |= Self.quantized((blue.constant + 1) / 2, 63) << 6
        first |= Self.quantized((red.constant + 1) / 2, 63) << 12
        first |= Self.quantized(luminance.scale, 31) << 18
        first |= alpha == nil ? 0 : 1 << 23
        var second = isLandscape ? down : across
        second |= Self.quantized(blue.scale, 63) << 3
        second |= Self.quantized(red.scale, 63) << 9
        second |= isLandscape ? 1 << 15 : 0
        var bytes = [first, first >> 8, first >> 16, second, second >> 8].map { UInt8(truncatingIfNeeded: $0) }
        if let alpha {
            bytes.append(UInt8(Self.quantized(alpha.constant, 15) | Self.quantized(alpha.scale, 15) << 4))
        }
        let coefficients = ([luminance, blue, red] + (alpha.map { [$0] } ?? [])).flatMap(\.normalized)
        for (index, coefficient) in coefficients.enumerated() {
            let nibble = UInt8(Self.quantized(coefficient, 15))
            if index.isMultiple(of: 2) { bytes.append(nibble) } else { bytes[bytes.count - 1] |= nibble << 4 }
        }
        self.bytes = bytes
    }

    /// A value of 0…1 as a whole number of 0…`highest`.
    private static func quantized(_ value: Double, _ highest: Int) -> Int {
        min(highest, max(0, Int((value * Double(highest)).rounded())))
    }

    // MARK: Painting

    /// Whether the picture has transparent parts.
    package var hasAlpha: Bool { bytes[2] & 0x80 != 0 }

    /// Paints the blur: bytes R, G, B, A of each pixel, in rows from top to bottom.
    ///
    /// - Parameters:
    ///   - width: In pixels, at least 1; the aspect ratio need not be exactly that of the picture.
    package func painted(width: Int, height: Int) -> [UInt8] {
        let layout = Layout(self)
        var nibbles = bytes.dropFirst(layout.headLength).flatMap { [$0 & 15, $0 >> 4] }[...]
        /// The terms of the next channel, whose coefficients are in −1…1 times its scale.
        func next(_ across: Int, _ down: Int, _ scale: Double) -> [Term] {
            let frequencies = Frequencies(across, down).all.dropFirst()
            defer { nibbles = nibbles.dropFirst(frequencies.count) }
            return zip(nibbles, frequencies).map { nibble, frequency in
                // Every cosine but the constant one counts twice in the inverse transform.
                Term(across: frequency.across, down: frequency.down, factor: 2 * (Double(nibble) / 7.5 - 1) * scale)
            }
        }
        let luminance = next(layout.across, layout.down, layout.luminanceScale)
        // Rounding to few values takes some saturation, which a factor gives back.
        let blue = next(3, 3, layout.blueScale * 1.25)
        let red = next(3, 3, layout.redScale * 1.25)
        let alpha = hasAlpha ? next(5, 5, layout.alphaScale) : []
        let (columns, rows) = (Cosines(width, count: 7), Cosines(height, count: 7))
        var pixels: [UInt8] = []
        pixels.reserveCapacity(4 * width * height)
        for y in 0..<height {
            for x in 0..<width {
                func sum(_ constant: Double, _ terms: [Term]) -> Double {
                    terms.reduce(constant) { $0 + $1.factor * columns[$1.across, x] * rows[$1.down, y] }
                }
                let light = sum(layout.luminance, luminance)
                let b = light - 2.0 / 3.0 * sum(layout.blue, blue)
                let difference = sum(layout.red, red)
                let r = (3 * light - b + difference) / 2
                for value in [r, r - difference, b, sum(layout.alpha, alpha)] {
                    pixels.append(UInt8(max(0, min(1, value)) * 255))
                }
            }
        }
        return pixels
    }

    /// A cosine of two dimensions and its factor.
    private struct Term {
        let across: Int
        let down: Int
        let factor: Double
    }

    /// The head of a hash.
    private struct Layout {
        let luminance: Double
        let blue: Double
        let red: Double
        let alpha: Double
        let luminanceScale: Double
        let blueScale: Double
        let redScale: Double
        let alphaScale: Double
        /// The numbers of cosines of luminance.
        let across: Int
        let down: Int
        /// Bytes before the coefficients.
        let headLength: Int
        /// Bytes of the whole hash.
        let length: Int

        init(_ hash: ThumbHash) {
            let bytes = hash.bytes.map(Int.init)
            let first = bytes[0] | bytes[1] << 8 | bytes[2] << 16
            let second = bytes[3] | bytes[4] << 8
            let hasAlpha = hash.hasAlpha
            luminance = Double(first & 63) / 63
            blue = Double(first >> 6 & 63) / 31.5 - 1
            red = Double(first >> 12 & 63) / 31.5 - 1
            luminanceScale = Double(first >> 18 & 31) / 31
            blueScale = Double(second >> 3 & 63) / 63
            redScale = Double(second >> 9 & 63) / 63
            alpha = hasAlpha ? Double(bytes[5] & 15) / 15 : 1
            alphaScale = hasAlpha ? Double(bytes[5] >> 4) / 15 : 0
            let (longer, shorter) = (hasAlpha ? 5 : 7, max(3, second & 7))
            let isLandscape = second >> 15 == 1
            across = isLandscape ? longer : shorter
            down = isLandscape ? shorter : longer
            headLength = hasAlpha ? 6 : 5
            let channels = [(across, down), (3, 3), (3, 3)] + (hasAlpha ? [(5, 5)] : [])
            let coefficients = channels.reduce(0) { $0 + Frequencies($1.0, $1.1).count - 1 }
            length = headLength + (coefficients + 1) / 2
        }
    }
}

/// The frequencies of a channel: those in the corner of low frequencies, row by row, the constant first.
private struct Frequencies {
    let all: [(across: Int, down: Int)]
    var count: Int { all.count }

    init(_ across: Int, _ down: Int) {
        all = (0..<down).flatMap { row in
            (0..<across).filter { $0 * down < across * (down - row) }.map { (across: $0, down: row) }
        }
    }
}

/// The cosines of the lowest frequencies along a side.
private struct Cosines {
    private let length: Int
    private let values: [Double]

    init(_ length: Int, count: Int) {
        self.length = length
        values = (0..<count).flatMap { frequency in
            (0..<length).map { Self.cosine(frequency * (2 * $0 + 1), of: 2 * length) }
        }
    }

    /// The cosine of π · `number` / `parts`. The C library's cosine may differ in the last bit from machine to
    /// machine.
    private static func cosine(_ number: Int, of parts: Int) -> Double {
        // In the first half turn, and then in the first quarter.
        var rest = number % (2 * parts)
        if rest > parts { rest = 2 * parts - rest }
        if 2 * rest > parts { return -cosine(parts - rest, of: parts) }
        let square = (Double.pi * Double(rest) / Double(parts)) * (Double.pi * Double(rest) / Double(parts))
        // The series, from its smallest term.
        return stride(from: 22, to: 0, by: -2).reduce(1.0) { 1 - square / Double($1 * ($1 - 1)) * $0 }
    }

    subscript(_ frequency: Int, _ position: Int) -> Double { values[frequency * length + position] }
}

/// A channel of a picture as a sum of cosines.
private struct Channel {
    let constant: Double
    /// The largest magnitude of a coefficient.
    let scale: Double
    /// The coefficients in 0…1, of which 0.5 stands for 0.
    let normalized: [Double]

    init(_ samples: [Double], _ width: Int, _ height: Int, _ across: Int, _ down: Int) {
        let (columns, rows) = (Cosines(width, count: across), Cosines(height, count: down))
        // The transform is separable: rows first.
        var partial = [Double](repeating: 0, count: across * height)
        for y in 0..<height {
            for frequency in 0..<across {
                var sum = 0.0
                for x in 0..<width { sum += samples[y * width + x] * columns[frequency, x] }
                partial[y * across + frequency] = sum
            }
        }
        let values = Frequencies(across, down).all.map { frequency in
            (0..<height).reduce(0.0) { $0 + partial[$1 * across + frequency.across] * rows[frequency.down, $1] }
                / Double(width * height)
        }
        let scale = values.dropFirst().reduce(0) { max($0, abs($1)) }
        constant = values[0]
        self.scale = scale
        // An even channel has coefficients other than 0 only because sums are rounded.
        normalized = values.dropFirst().map { scale > 1e-9 ? 0.5 + 0.5 / scale * $0 : 0 }
    }
}

/// The channels of a picture. Transparent pixels have the mean colour of the visible ones.
private struct Channels {
    private(set) var luminance: [Double] = []
    /// The mean of red and green, less blue.
    private(set) var blue: [Double] = []
    /// Red less green.
    private(set) var red: [Double] = []
    private(set) var alpha: [Double] = []
    let hasAlpha: Bool

    init(_ picture: borrowing StillPicture) {
        let count = picture.width * picture.height
        var sums = (red: 0.0, green: 0.0, blue: 0.0, alpha: 0.0)
        for index in 0..<count {
            let (red, green, blue, alpha) = Self.components(picture.words[index])
            sums = (sums.red + alpha * red, sums.green + alpha * green, sums.blue + alpha * blue, sums.alpha + alpha)
        }
        let visible = sums.alpha > 0 ? sums.alpha : 1
        let mean = (red: sums.red / visible, green: sums.green / visible, blue: sums.blue / visible)
        hasAlpha = sums.alpha < Double(count)
        for index in 0..<count {
            let (red, green, blue, alpha) = Self.components(picture.words[index])
            let r = mean.red * (1 - alpha) + alpha * red
            let g = mean.green * (1 - alpha) + alpha * green
            let b = mean.blue * (1 - alpha) + alpha * blue
            luminance.append((r + g + b) / 3)
            self.blue.append((r + g) / 2 - b)
            self.red.append(r - g)
            self.alpha.append(alpha)
        }
    }

    private static func components(_ word: UInt32) -> (red: Double, green: Double, blue: Double, alpha: Double) {
        (
            Double(word & 255) / 255, Double(word >> 8 & 255) / 255, Double(word >> 16 & 255) / 255, Double(word >> 24) / 255
        )
    }
}
