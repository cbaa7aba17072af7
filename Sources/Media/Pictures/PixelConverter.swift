/// Writes the changed part of a canvas into planes.
///
/// The canvas already holds converted colours, so luma is copied. In 4:2:0, the chroma of a 2×2 block is the rounded mean of
/// its four pixels, including their fractional bits. The last row or column of an odd side is repeated.
enum PixelConverter {
    /// Converts the rectangle of `canvas`, which must be in the format ``PixelFormat/yuv(background:)``.
    ///
    /// - Returns: Whether a sample changed.
    static func convert(_ canvas: borrowing Canvas, _ rectangle: Rectangle, into planes: FramePlanes) -> Bool {
        if rectangle.isEmpty { return false }
        var hasChanged = false
        for y in stride(from: rectangle.y & ~1, to: rectangle.maxY, by: 2) {
            let upper = canvas.pixels + y * canvas.width
            let lower = y + 1 < canvas.height ? upper + canvas.width : upper
            if convert(RowPair(upper: upper, lower: lower, width: canvas.width, y: y), rectangle, into: planes) {
                hasChanged = true
            }
        }
        return hasChanged
    }

    /// Two rows of a picture in the format ``PixelFormat/yuv(background:)``. At the end of a picture of odd height, the second
    /// row repeats the first.
    struct RowPair {
        var upper: UnsafePointer<UInt32>
        var lower: UnsafePointer<UInt32>
        var width: Int
        /// The number of the upper row, which is even.
        var y: Int
    }

    /// Converts the columns of a rectangle in a pair of rows.
    ///
    /// - Returns: Whether a sample changed.
    static func convert(_ pair: RowPair, _ rectangle: Rectangle, into planes: FramePlanes) -> Bool {
        let left = rectangle.x & ~1
        let right = (rectangle.maxX + 1) & ~1
        if planes.chroma == .full { return convertEachPixel(pair, columns: left..<right, into: planes) }
        // Whole pairs of columns; a last odd column is converted separately.
        let pairs = (min(right, pair.width & ~1) - left) / 2
        let rows = Rows(planes: planes, y: pair.y)
        let (upper, lower, first) = (pair.upper + left, pair.lower + left, rows.advanced(to: left))
        let (eights, whole) = convertEights(upper, lower, first, count: pairs)
        var difference = eights | convertEach(upper, lower, first, from: whole, to: pairs)
        if right > pair.width {
            // The right half of the last block repeats the last column.
            let last = pair.width - 1
            difference |= convertEach(pair.upper + last, pair.lower + last, rows.advanced(to: last), from: 0, to: 1, right: 0)
        }
        return difference != 0
    }

    private static func convertEachPixel(_ pair: RowPair, columns: Range<Int>, into planes: FramePlanes) -> Bool {
        var difference: UInt8 = 0
        for (row, words) in [pair.upper, pair.lower].enumerated() {
            let y = pair.y + row
            let (luma, cb, cr) = (
                planes.luma + y * planes.lumaStride, planes.cb + y * planes.cbStride, planes.cr + y * planes.crStride
            )
            for x in columns {
                let sample = YUVSample(words[min(x, pair.width &- 1)])
                difference |= (luma[x] ^ sample.luma) | (cb[x] ^ sample.cb) | (cr[x] ^ sample.cr)
                luma[x] = sample.luma
                cb[x] = sample.cb
                cr[x] = sample.cr
            }
        }
        return difference != 0
    }

    /// The addresses of a pair of luma rows and of their chroma rows.
    private struct Rows {
        var upper: UnsafeMutablePointer<UInt8>
        var lower: UnsafeMutablePointer<UInt8>
        var cb: UnsafeMutablePointer<UInt8>
        var cr: UnsafeMutablePointer<UInt8>

        init(planes: FramePlanes, y: Int) {
            upper = planes.luma + y * planes.lumaStride
            lower = upper + planes.lumaStride
            cb = planes.cb + y / 2 * planes.cbStride
            cr = planes.cr + y / 2 * planes.crStride
        }

        func advanced(to x: Int) -> Rows {
            var rows = self
            rows.upper += x
            rows.lower += x
            rows.cb += x / 2
            rows.cr += x / 2
            return rows
        }
    }

    /// Converts blocks of 2×2 pixels in groups of four. Returns a value other than 0 if a sample changed, and the number of
    /// converted blocks.
    private static func convertEights(
        _ upper: UnsafePointer<UInt32>, _ lower: UnsafePointer<UInt32>, _ rows: Rows, count: Int
    ) -> (difference: UInt32, blocks: Int) {
        var luma = SIMD16<UInt8>()
        var chroma = SIMD8<UInt8>()
        var index = 0
        while index &+ 4 <= count {
            let x = index &* 2
            let top = UnsafeRawPointer(upper + x).loadUnaligned(as: SIMD8<UInt32>.self)
            let low = UnsafeRawPointer(lower + x).loadUnaligned(as: SIMD8<UInt32>.self)
            // The sum of four 12-bit values has 14 bits; half of the divisor is added to round.
            let cb = (top &>> 8 & 0xfff) &+ (low &>> 8 & 0xfff)
            let cr = (top &>> 20) &+ (low &>> 20)
            let sums = SIMD8(lowHalf: cb.evenHalf &+ cb.oddHalf, highHalf: cr.evenHalf &+ cr.oddHalf)
            let newLuma = SIMD16<UInt8>(truncatingIfNeeded: SIMD16(lowHalf: top, highHalf: low))
            let newChroma = SIMD8<UInt8>(truncatingIfNeeded: (sums &+ 32) &>> 6)
            let places = (
                UnsafeMutableRawPointer(rows.upper + x), UnsafeMutableRawPointer(rows.lower + x),
                UnsafeMutableRawPointer(rows.cb + index), UnsafeMutableRawPointer(rows.cr + index)
            )
            let oldLuma = SIMD16(
                lowHalf: places.0.loadUnaligned(as: SIMD8<UInt8>.self), highHalf: places.1.loadUnaligned(as: SIMD8<UInt8>.self))
            let oldChroma = SIMD8(
                lowHalf: places.2.loadUnaligned(as: SIMD4<UInt8>.self), highHalf: places.3.loadUnaligned(as: SIMD4<UInt8>.self))
            luma |= newLuma ^ oldLuma
            chroma |= newChroma ^ oldChroma
            places.0.storeBytes(of: newLuma.lowHalf, as: SIMD8<UInt8>.self)
            places.1.storeBytes(of: newLuma.highHalf, as: SIMD8<UInt8>.self)
            places.2.storeBytes(of: newChroma.lowHalf, as: SIMD4<UInt8>.self)
            places.3.storeBytes(of: newChroma.highHalf, as: SIMD4<UInt8>.self)
            index &+= 4
        }
        return (luma == SIMD16() && chroma == SIMD8() ? 0 : 1, index)
    }

    /// Converts the blocks one by one.
    ///
    /// - Parameter right: The distance of a block's right column from its left column.
    private static func convertEach(
        _ upper: UnsafePointer<UInt32>, _ lower: UnsafePointer<UInt32>, _ rows: Rows, from start: Int, to end: Int,
        right: Int = 1
    ) -> UInt32 {
        var difference: UInt32 = 0
        var index = start
        while index < end {
            let x = index &* 2
            let a = upper[x]
            let b = upper[x &+ right]
            let c = lower[x]
            let d = lower[x &+ right]
            let top = UInt16(truncatingIfNeeded: a & 0xff | (b & 0xff) << 8)
            let low = UInt16(truncatingIfNeeded: c & 0xff | (d & 0xff) << 8)
            // The sum of four 12-bit values has 14 bits; half of the divisor is added to round.
            let cb = (a >> 8 & 0xfff) &+ (b >> 8 & 0xfff) &+ (c >> 8 & 0xfff) &+ (d >> 8 & 0xfff) &+ 32
            let cr = (a >> 20) &+ (b >> 20) &+ (c >> 20) &+ (d >> 20) &+ 32
            let cb8 = UInt8(truncatingIfNeeded: cb >> 6)
            let cr8 = UInt8(truncatingIfNeeded: cr >> 6)
            let topPair = UnsafeMutableRawPointer(rows.upper + x)
            let lowPair = UnsafeMutableRawPointer(rows.lower + x)
            difference |= UInt32(topPair.loadUnaligned(as: UInt16.self) ^ top)
            difference |= UInt32(lowPair.loadUnaligned(as: UInt16.self) ^ low)
            difference |= UInt32(rows.cb[index] ^ cb8) | UInt32(rows.cr[index] ^ cr8)
            topPair.storeBytes(of: top, as: UInt16.self)
            lowPair.storeBytes(of: low, as: UInt16.self)
            rows.cb[index] = cb8
            rows.cr[index] = cr8
            index &+= 1
        }
        return difference
    }
}
