/// The samples of a pixel in the format ``PixelFormat/yuv(background:)``, with chroma rounded to 8 bits.
struct YUVSample {
    let luma: UInt8
    let cb: UInt8
    let cr: UInt8

    @inline(__always)
    init(_ word: UInt32) {
        luma = UInt8(truncatingIfNeeded: word)
        cb = UInt8(truncatingIfNeeded: ((word >> 8 & 0xfff) &+ 8) >> 4)
        cr = UInt8(truncatingIfNeeded: ((word >> 20) &+ 8) >> 4)
    }
}

/// The format of a canvas' pixels, 32 bits each. Palette entries are converted once; drawing then copies words.
package enum PixelFormat: Sendable {
    /// Bytes R, G, B, A in memory order; transparent pixels are 0.
    case rgba
    /// Bits 0–7: luma; 8–19 and 20–31: Cb and Cr with four fractional bits. BT.709, limited range.
    /// Transparent pixels are the background.
    case yuv(background: RGB)

    /// The smallest opaque word in the format ``rgba``.
    static let opaque: UInt32 = 0xff00_0000

    /// Converts a pixel from the format ``rgba`` to ``yuv(background:)``, ignoring its alpha.
    static func yuv(_ word: UInt32) -> UInt32 {
        packYUV(
            RGB(
                red: UInt8(truncatingIfNeeded: word), green: UInt8(truncatingIfNeeded: word >> 8),
                blue: UInt8(truncatingIfNeeded: word >> 16)))
    }

    /// Returns an opaque pixel of the colour.
    func pack(_ color: RGB) -> UInt32 {
        switch self {
        case .rgba:
            UInt32(color.red) | UInt32(color.green) << 8 | UInt32(color.blue) << 16 | 0xff00_0000
        case .yuv:
            Self.packYUV(color)
        }
    }

    /// An untouched or cleared pixel.
    var clear: UInt32 {
        switch self {
        case .rgba: 0
        case .yuv(let background): Self.packYUV(background)
        }
    }

    /// Returns the pixel that results from drawing a colour with alpha.
    ///
    /// - Parameter word: R, G, B, A from the lowest byte to the highest, straight alpha.
    func draw(_ word: UInt32, _ blend: AnimationFrame.Blend, over old: UInt32) -> UInt32 {
        let alpha = word >> 24
        let color = RGB(
            red: UInt8(truncatingIfNeeded: word), green: UInt8(truncatingIfNeeded: word >> 8),
            blue: UInt8(truncatingIfNeeded: word >> 16))
        switch (self, alpha) {
        case (_, 255): return pack(color)
        case (_, 0): return blend == .replace ? clear : old
        case (.yuv, _):
            // A frame that replaces the canvas shows the background through its translucent pixels.
            return Self.mix(pack(color), blend == .replace ? clear : old, alpha)
        case (.rgba, _):
            switch blend {
            case .replace: return word
            case .over: return Self.over(word, old)
            case .overDown: return Self.overDown(word, old)
            }
        }
    }

    /// Returns the mean of two words in the format ``yuv(background:)``, weighted by alpha and its complement.
    @inline(__always)
    private static func mix(_ new: UInt32, _ old: UInt32, _ alpha: UInt32) -> UInt32 {
        @inline(__always)
        func mean(_ shift: UInt32, _ mask: UInt32) -> UInt32 {
            let sum = (new &>> shift & mask) &* alpha &+ (old &>> shift & mask) &* (255 &- alpha)
            return ((sum &+ 127) / 255) &<< shift
        }
        return mean(0, 0xff) | mean(8, 0xfff) | mean(20, 0xfff)
    }

    /// Converts opaque pixels in the format ``rgba`` as ``packYUV(_:)`` does.
    @inline(__always)
    static func yuv(_ words: SIMD8<UInt32>) -> SIMD8<UInt32> {
        let red = SIMD8<Int32>(truncatingIfNeeded: words & 255)
        let green = SIMD8<Int32>(truncatingIfNeeded: words &>> 8 & 255)
        let blue = SIMD8<Int32>(truncatingIfNeeded: words &>> 16 & 255)
        // One term at a time, because Swift 6.2 cannot check the types of one long expression.
        var luma = SIMD8<Int32>(repeating: 16 << 16 + 1 << 15)
        luma &+= 11_966 &* red
        luma &+= 40_254 &* green
        luma &+= 4_064 &* blue
        var cb = SIMD8<Int32>(repeating: 128 << 16 + 1 << 11)
        cb &+= 28_785 &* blue
        cb &-= 6_596 &* red
        cb &-= 22_189 &* green
        var cr = SIMD8<Int32>(repeating: 128 << 16 + 1 << 11)
        cr &+= 28_784 &* red
        cr &-= 26_145 &* green
        cr &-= 2_639 &* blue
        luma &>>= 16
        cb &>>= 12
        cr &>>= 12
        let chroma: SIMD8<Int32> = cb &<< 8 | cr &<< 20
        return SIMD8<UInt32>(truncatingIfNeeded: luma | chroma)
    }

    /// Composites a translucent pixel over another; both with straight alpha (the operator “over” of Porter and Duff, 1984).
    private static func over(_ new: UInt32, _ old: UInt32) -> UInt32 {
        let (alpha, below) = (new >> 24, old >> 24)
        // In units of 1/255².
        let rest = below * (255 - alpha)
        let total = alpha * 255 + rest
        var word = ((total + 127) / 255) << 24
        for shift in stride(from: UInt32(0), to: 24, by: 8) {
            let sum = (new >> shift & 255) * alpha * 255 + (old >> shift & 255) * rest
            word |= ((sum + total / 2) / total) << shift
        }
        return word
    }

    /// Draws a translucent pixel like libwebp's `BlendPixelNonPremult`, which Chromium does not call over transparent pixels.
    private static func overDown(_ new: UInt32, _ old: UInt32) -> UInt32 {
        if old >> 24 == 0 { return new }
        let alpha = new >> 24
        let rest = ((old >> 24) * (256 - alpha)) >> 8
        let total = alpha + rest
        let scale = (1 << 24) / total
        var word = total << 24
        for shift in stride(from: UInt32(0), to: 24, by: 8) {
            let sum = (new >> shift & 255) * alpha + (old >> shift & 255) * rest
            word |= ((sum * scale) >> 24) << shift
        }
        return word
    }

    /// ITU-R BT.709-6 §3, 8 bit: Y' = 16 + 219 E'y, Cb = 128 + 224 (E'b − E'y) / 1.8556, Cr = 128 + 224 (E'r − E'y) / 1.5748,
    /// in fixed point with 16 fractional bits of the coefficients scaled by 1/255.
    private static func packYUV(_ color: RGB) -> UInt32 {
        let red = Int32(color.red)
        let green = Int32(color.green)
        let blue = Int32(color.blue)
        let luma = (11_966 * red + 40_254 * green + 4_064 * blue + (16 << 16) + (1 << 15)) >> 16
        // The coefficients of each chroma component sum to zero, so that grey has no chroma.
        let cb = (-6_596 * red - 22_189 * green + 28_785 * blue + (128 << 16) + (1 << 11)) >> 12
        let cr = (28_784 * red - 26_145 * green - 2_639 * blue + (128 << 16) + (1 << 11)) >> 12
        return UInt32(luma) | UInt32(cb) << 8 | UInt32(cr) << 20
    }
}
