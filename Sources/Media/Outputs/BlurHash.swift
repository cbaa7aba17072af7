/// The BlurHash of a picture: a few low frequencies as base-83 text, which clients decode to a blur without loading anything
/// (the algorithm at blurha.sh). Mastodon, Misskey and Matrix store this text with a picture.
package enum BlurHash {
    /// The digits of base 83, in the order of the format.
    private static let digits = Array(
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz#$%*+,-.:;=?@[]^_{|}~".utf8)

    /// The longest text: 4 × 4 frequencies.
    static let maximumLength = 4 + 2 * 16

    /// Encodes a canvas in the format ``PixelFormat/rgba``, composited over white like a JPEG poster.
    ///
    /// The sums use single precision and the reference encoder's order, so the text is identical to its output.
    static func encode(_ canvas: borrowing Canvas) -> String {
        let (width, height) = (canvas.width, canvas.height)
        let (across, down) = frequencies(width: width, height: height)
        let columns = waves(across, length: width).map { wave in lanes { wave[$0 % across] } }
        let rows = waves(down, length: height).map { wave in lanes { $0 / across < down ? wave[$0 / across] : 0 } }
        let light = (0...255).map { Float(PortableMath.linear(sRGB: Double($0) / 255)) }
        let white = PixelFormat.rgba.pack(.white)
        var (red, green, blue) = (SIMD16<Float>.zero, SIMD16<Float>.zero, SIMD16<Float>.zero)
        for y in 0..<height {
            let pixels = canvas.pixels + y * canvas.width
            for x in 0..<width {
                var word = pixels[x]
                if word < PixelFormat.opaque { word = PixelFormat.rgba.draw(word, .over, over: white) }
                let wave = columns[x] * rows[y]
                red += wave * light[Int(word & 255)]
                green += wave * light[Int(word >> 8 & 255)]
                blue += wave * light[Int(word >> 16 & 255)]
            }
        }
        let count = Float(width * height)
        let factors = (0..<across * down).map { index in
            let scale = (index == 0 ? 1 : 2) / count
            return [red[index] * scale, green[index] * scale, blue[index] * scale]
        }
        return text(factors, across: across, down: down)
    }

    /// About twelve frequencies, more along the longer side.
    private static func frequencies(width: Int, height: Int) -> (across: Int, down: Int) {
        if width * 10 > height * 11 { return (4, 3) }
        return height * 10 > width * 11 ? (3, 4) : (4, 4)
    }

    /// Returns the values of the cosine waves at each position along a side.
    private static func waves(_ count: Int, length: Int) -> [[Float]] {
        (0..<length).map { position in
            (0..<count).map { Float(PortableMath.cosine(halfTurns: Double($0 * position) / Double(length))) }
        }
    }

    private static func lanes(_ value: (Int) -> Float) -> SIMD16<Float> {
        var lanes = SIMD16<Float>.zero
        for index in 0..<16 { lanes[index] = value(index) }
        return lanes
    }

    /// Returns the sRGB level, from 0 to 255, of linear light.
    private static func level(_ value: Float) -> Int {
        Int(PortableMath.sRGB(linear: Double(min(max(value, 0), 1))) * 255 + 0.5)
    }

    /// Returns the frequencies as text: their counts, the largest value, the mean colour, and the other frequencies.
    private static func text(_ factors: [[Float]], across: Int, down: Int) -> String {
        let others = factors.dropFirst()
        let largest = others.joined().reduce(Float.zero) { max($0, abs($1)) }
        let quantized = Int(min(max((Double(largest * 166) - 0.5).rounded(.down), 0), 82))
        let scale = (Float(quantized) + 1) / 166
        var text = encode(across - 1 + (down - 1) * 9, length: 1) + encode(quantized, length: 1)
        text += encode(factors[0].reduce(0) { $0 << 8 | level($1) }, length: 4)
        for factor in others {
            let value = factor.reduce(0) { sum, component in
                let ratio = component / scale
                let root = Float(signOf: ratio, magnitudeOf: abs(ratio).squareRoot())
                return sum * 19 + Int(min(max((Double(root * 9) + 9.5).rounded(.down), 0), 18))
            }
            text += encode(value, length: 2)
        }
        return String(decoding: text, as: UTF8.self)
    }

    private static func encode(_ value: Int, length: Int) -> [UInt8] {
        var (rest, text) = (value, [UInt8](repeating: 0, count: length))
        for index in (0..<length).reversed() {
            text[index] = digits[rest % 83]
            rest /= 83
        }
        return text
    }

    /// Whether a text has the digits and length of a BlurHash that this version creates.
    package static func isValid(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        guard bytes.count <= maximumLength, let first = bytes.first, let sizes = digits.firstIndex(of: first) else {
            return false
        }
        return bytes.count == 4 + 2 * (sizes % 9 + 1) * (sizes / 9 + 1) && bytes.allSatisfy(digits.contains)
    }
}
