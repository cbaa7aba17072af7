/// An 8-bit component of a canvas, from which the dither is subtracted: luma in the format ``PixelFormat/yuv(background:)``;
/// red, green or blue in the format ``PixelFormat/rgba``, where only opaque pixels change.
struct DitheredPlane {
    let width: Int
    let height: Int
    /// The component's bit offset in a pixel's word.
    private let shift: UInt32
    /// Pixels whose word is smaller do not change.
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

    /// The pixels of a row, whose colours limit the change of its samples.
    func words(y: Int) -> UnsafePointer<UInt32> { source + y * width }

    /// Reads part of a row as samples centred on zero.
    func read(x left: Int, y: Int, count: Int, into samples: UnsafeMutablePointer<Int16>) {
        let words = words(y: y) + left
        for x in 0..<count { samples[x] = Int16(truncatingIfNeeded: words[x] >> shift & Self.largest) &- 128 }
    }

    /// Subtracts from part of an output row, which begins with a cell. A sample changes by at most the mean reach of its cell.
    ///
    /// - Parameters:
    ///   - removed: The dither in units of 1/``DitherRemover/unit`` of a level. Eight samples are read at a time.
    ///   - reach: The reach sums of the samples' cells.
    func store(_ removed: UnsafePointer<Int16>, _ reach: UnsafePointer<Int32>, x left: Int, y: Int, count: Int) {
        let words = target + (y * width + left)
        for x in stride(from: 0, to: count, by: 8) {
            let moves = UnsafeRawPointer(removed + x).loadUnaligned(as: SIMD8<Int16>.self)
            // The sum of sixteen quarter levels is their mean in this unit.
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
