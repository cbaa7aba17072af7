/// Converts a picture to planes of full-range Y'CbCr (JFIF 1.02, ITU-R BT.601).
struct JPEGPlanes {
    let luma: UnsafeMutablePointer<UInt8>
    let cb: UnsafeMutablePointer<UInt8>
    let cr: UnsafeMutablePointer<UInt8>
    /// Bytes from one row to the next.
    let lumaStride: Int
    let cbStride: Int
    let crStride: Int

    /// Converts every pixel and ignores alpha.
    ///
    /// - Parameter isSubsampled: A chroma sample is the mean of 2×2 pixels; at the end of an odd side, of fewer.
    func fill(from picture: borrowing StillPicture, isSubsampled: Bool) {
        for y in 0..<picture.height {
            let words = picture.words + y * picture.width
            let row = luma + y * lumaStride
            for x in 0..<picture.width { row[x] = Self.luma(words[x]) }
        }
        let step = isSubsampled ? 2 : 1
        for y in stride(from: 0, to: picture.height, by: step) {
            let upper = picture.words + y * picture.width
            let lower = picture.words + min(y + step - 1, picture.height - 1) * picture.width
            let (blue, red) = (cb + y / step * cbStride, cr + y / step * crStride)
            for x in stride(from: 0, to: picture.width, by: step) {
                let next = min(x + step - 1, picture.width - 1)
                (blue[x / step], red[x / step]) = Self.chroma((upper[x], upper[next], lower[x], lower[next]))
            }
        }
    }

    /// 0.299 R + 0.587 G + 0.114 B with 16 fractional bits.
    private static func luma(_ word: UInt32) -> UInt8 {
        let sum = 19_595 &* (word & 255) &+ 38_470 &* (word >> 8 & 255) &+ 7_471 &* (word >> 16 & 255)
        return UInt8(truncatingIfNeeded: (sum &+ 32_768) >> 16)
    }

    /// 128 + (B − Y) / 1.772 and 128 + (R − Y) / 1.402 of the mean of four pixels, with 16 fractional bits.
    private static func chroma(_ block: (UInt32, UInt32, UInt32, UInt32)) -> (UInt8, UInt8) {
        let red = sum(block, shift: 0)
        let green = sum(block, shift: 8)
        let blue = sum(block, shift: 16)
        // The coefficients' sums are 0, so that grey has no colour; four pixels add two bits.
        let cb = (-11_058 &* red &- 21_710 &* green &+ 32_768 &* blue &+ (128 << 18) &+ (1 << 17) &- 1) >> 18
        let cr = (32_768 &* red &- 27_439 &* green &- 5_329 &* blue &+ (128 << 18) &+ (1 << 17) &- 1) >> 18
        return (UInt8(truncatingIfNeeded: min(cb, 255)), UInt8(truncatingIfNeeded: min(cr, 255)))
    }

    private static func sum(_ block: (UInt32, UInt32, UInt32, UInt32), shift: UInt32) -> Int32 {
        let first = (block.0 >> shift & 255) &+ (block.1 >> shift & 255)
        let second = (block.2 >> shift & 255) &+ (block.3 >> shift & 255)
        return Int32(first &+ second)
    }
}
