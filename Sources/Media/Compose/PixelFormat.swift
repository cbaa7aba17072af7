/// How a canvas keeps a pixel in 32 bits. The palette's entries are converted once each; composing then moves words.
package enum PixelFormat: Sendable {
    /// Bytes R, G, B, A in memory order; transparent pixels are 0.
    case rgba
    /// Bits 0–7: luma; 8–19 and 20–31: Cb and Cr with four fractional bits. BT.709, limited range.
    /// Transparent pixels are the background.
    case yuv(background: RGB)

    /// An opaque pixel of the colour.
    func pack(_ color: RGB) -> UInt32 {
        switch self {
        case .rgba:
            UInt32(color.red) | UInt32(color.green) << 8 | UInt32(color.blue) << 16 | 0xff00_0000
        case .yuv:
            Self.packYUV(color)
        }
    }

    /// What an untouched or cleared pixel is.
    var clear: UInt32 {
        switch self {
        case .rgba: 0
        case .yuv(let background): Self.packYUV(background)
        }
    }

    /// ITU-R BT.709-6 §3, 8 bit: Y' = 16 + 219 E'y, Cb = 128 + 224 (E'b − E'y) / 1.8556, Cr = 128 + 224 (E'r − E'y) / 1.5748,
    /// in fixed point with 16 fractional bits of the coefficients scaled by 1/255.
    private static func packYUV(_ color: RGB) -> UInt32 {
        let red = Int32(color.red)
        let green = Int32(color.green)
        let blue = Int32(color.blue)
        let luma = (11_966 * red + 40_254 * green + 4_064 * blue + (16 << 16) + (1 << 15)) >> 16
        // The rows of each chroma coefficient sum to zero, so that grey has no colour.
        let cb = (-6_596 * red - 22_189 * green + 28_785 * blue + (128 << 16) + (1 << 11)) >> 12
        let cr = (28_784 * red - 26_145 * green - 2_639 * blue + (128 << 16) + (1 << 11)) >> 12
        return UInt32(luma) | UInt32(cb) << 8 | UInt32(cr) << 20
    }
}

/// A colour of 8-bit sRGB components.
package struct RGB: Sendable, Equatable, Hashable {
    package var red: UInt8
    package var green: UInt8
    package var blue: UInt8

    package init(red: UInt8, green: UInt8, blue: UInt8) {
        self.red = red
        self.green = green
        self.blue = blue
    }

    package static let white = RGB(red: 255, green: 255, blue: 255)
}
