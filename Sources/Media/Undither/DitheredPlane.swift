/// An eight-bit component of a canvas, from which the dither is subtracted: the luma of a canvas in the format
/// ``PixelFormat/yuv(background:)``, or red, green or blue of one in the format ``PixelFormat/rgba``, where only opaque pixels are
/// changed.
struct DitheredPlane {
    let width: Int
    let height: Int
    /// The component's place in a pixel's word.
    private let shift: UInt32
    /// Pixels whose word is smaller do not move.
    private let least: UInt32
    private let source: UnsafePointer<UInt32>
    private let target: UnsafeMutablePointer<UInt32>

    private static let largest: UInt32 = 0xff

    init(_ canvas: borrowing Canvas, _ output: borrowing Canvas, shift: UInt32) {
        width = canvas.width
        height = canvas.height
        self.shift = shift
        least = if case .rgba = canvas.format { PixelFormat.opaque } else { 0 }
        source = UnsafePointer(canvas.pixels)
        target = output.pixels
    }

    /// The pixels of a row, whose colours determine how far its samples are off.
    func words(y: Int) -> UnsafePointer<UInt32> { source + y * width }

    /// Reads a part of a row: samples that are zero in the middle of their range.
    func read(x left: Int, y: Int, count: Int, into samples: UnsafeMutablePointer<Int16>) {
        let words = words(y: y) + left
        for x in 0..<count { samples[x] = Int16(truncatingIfNeeded: words[x] >> shift & Self.largest) &- 128 }
    }

    /// Subtracts from a part of a row of the output, which begins with a cell. A sample moves by at most the mean reach of its cell.
    ///
    /// - Parameters:
    ///   - removed: In units of 1/``DitherRemover/unit`` of a sample. Eight are read at a time.
    ///   - reach: The sums of the cells that the samples lie in.
    func store(_ removed: UnsafePointer<Int16>, _ reach: UnsafePointer<Int32>, x left: Int, y: Int, count: Int) {
        let words = target + (y * width + left)
        for x in stride(from: 0, to: count, by: 8) {
            let moves = UnsafeRawPointer(removed + x).loadUnaligned(as: SIMD8<Int16>.self)
            // The sum of sixteen quarters of a level is the mean in this unit.
            let first = Int16(truncatingIfNeeded: reach[x &>> 2])
            let second = Int16(truncatingIfNeeded: reach[(x &>> 2) &+ 1])
            let limits = SIMD8(lowHalf: SIMD4(repeating: first), highHalf: SIMD4(repeating: second))
            let levels = (moves.clamped(from: 0 &- limits, to: limits) &+ 32) &>> 6
            subtract(levels, from: words + x, count: count &- x)
        }
    }

    /// Subtracts from the components of at most eight pixels.
    @inline(__always)
    private func subtract(_ levels: SIMD8<Int16>, from words: UnsafeMutablePointer<UInt32>, count: Int) {
        if count >= 8 {
            let address = UnsafeMutableRawPointer(words)
            address.storeBytes(of: moved(address.loadUnaligned(as: SIMD8<UInt32>.self), levels), as: SIMD8<UInt32>.self)
        } else {
            var eight = SIMD8<UInt32>()
            for i in 0..<count { eight[i] = words[i] }
            eight = moved(eight, levels)
            for i in 0..<count { words[i] = eight[i] }
        }
    }

    @inline(__always)
    private func moved(_ words: SIMD8<UInt32>, _ levels: SIMD8<Int16>) -> SIMD8<UInt32> {
        let values = SIMD8<Int16>(truncatingIfNeeded: words &>> shift & Self.largest) &- levels
        let clamped = values.clamped(from: SIMD8(), to: SIMD8(repeating: Int16(truncatingIfNeeded: Self.largest)))
        let result = words & ~(Self.largest << shift) | SIMD8<UInt32>(truncatingIfNeeded: clamped) &<< shift
        return least == 0 ? result : words.replacing(with: result, where: words .>= least)
    }
}
