/// One plane of a canvas: how its samples are read, and how what dither adds is taken away from the output.
protocol DitheredPlane {
    var width: Int { get }
    var height: Int { get }

    /// Reads a part of a row: samples that are zero in the middle of their range.
    func read(x: Int, y: Int, count: Int, into samples: UnsafeMutablePointer<Int16>)

    /// The pixels whose colours tell how far the samples of a row are off: from the first sample on, `step` apart.
    func words(y: Int) -> (first: UnsafePointer<UInt32>, step: Int)

    /// Subtracts from a part of a row of the output, which begins with a cell.
    ///
    /// - Parameters:
    ///   - removed: In units of 1/``DitherRemover/unit`` of a sample.
    ///   - reach: The sums of the cells that the samples lie in.
    func store(_ removed: UnsafePointer<Int16>, _ reach: UnsafePointer<Int32>, x: Int, y: Int, count: Int)
}

/// A component of a canvas' pixels.
private struct Component {
    let shift: UInt32
    let largest: UInt32
    /// Pixels whose word is smaller do not move.
    let least: UInt32

    /// Subtracts from the components of at most eight pixels.
    @inline(__always)
    func subtract(_ moves: SIMD8<Int16>, from words: UnsafeMutablePointer<UInt32>, count: Int) {
        if count >= 8 {
            let address = UnsafeMutableRawPointer(words)
            address.storeBytes(of: moved(address.loadUnaligned(as: SIMD8<UInt32>.self), by: moves), as: SIMD8<UInt32>.self)
        } else {
            var eight = SIMD8<UInt32>()
            for i in 0..<max(0, count) { eight[i] = words[i] }
            eight = moved(eight, by: moves)
            for i in 0..<max(0, count) { words[i] = eight[i] }
        }
    }

    @inline(__always)
    private func moved(_ words: SIMD8<UInt32>, by moves: SIMD8<Int16>) -> SIMD8<UInt32> {
        let values = SIMD8<Int16>(truncatingIfNeeded: words &>> shift & largest) &- moves
        let clamped = values.clamped(from: SIMD8(), to: SIMD8(repeating: Int16(truncatingIfNeeded: largest)))
        let result = words & ~(largest << shift) | SIMD8<UInt32>(truncatingIfNeeded: clamped) &<< shift
        return least == 0 ? result : words.replacing(with: result, where: words .>= least)
    }
}

/// Calls a function for eight samples at a time with what they move, in units of 1/``DitherRemover/unit``: at most the mean reach of
/// their cell. The last call may go beyond `count`, as the rows of a ``DitherRemover`` have a border.
@inline(__always)
private func forEachEight(
    _ removed: UnsafePointer<Int16>, _ reach: UnsafePointer<Int32>, count: Int,
    _ body: (_ x: Int, _ moves: SIMD8<Int16>) -> Void
) {
    for x in stride(from: 0, to: count, by: 8) {
        let moves = UnsafeRawPointer(removed + x).loadUnaligned(as: SIMD8<Int16>.self)
        // The sum of sixteen quarters of a level is the mean in this unit.
        let left = Int16(truncatingIfNeeded: reach[x &>> 2])
        let right = Int16(truncatingIfNeeded: reach[(x &>> 2) &+ 1])
        let limits = SIMD8(lowHalf: SIMD4(repeating: left), highHalf: SIMD4(repeating: right))
        body(x, moves.clamped(from: 0 &- limits, to: limits))
    }
}

/// Cb or Cr of a canvas of the format ``PixelFormat/yuv(background:)``: means of 2 × 2 pixels in units of half a level.
struct ChromaPlane: DitheredPlane {
    let width: Int
    let height: Int
    private let columns: Int
    private let rows: Int
    private let shift: UInt32
    private let source: UnsafePointer<UInt32>
    private let target: UnsafeMutablePointer<UInt32>

    init(_ canvas: borrowing Canvas, _ output: borrowing Canvas, shift: UInt32) {
        columns = canvas.width
        rows = canvas.height
        width = (columns + 1) / 2
        height = (rows + 1) / 2
        self.shift = shift
        source = UnsafePointer(canvas.pixels)
        target = output.pixels
    }

    func read(x left: Int, y: Int, count: Int, into samples: UnsafeMutablePointer<Int16>) {
        let upper = source + (2 * y * columns + 2 * left)
        let lower = source + (min(2 * y + 1, rows - 1) * columns + 2 * left)
        let last = columns - 2 * left - 1
        @inline(__always) func sum(_ a: UInt32, _ b: UInt32, _ c: UInt32, _ d: UInt32) -> Int16 {
            let sum = (a >> shift & 0xfff) &+ (b >> shift & 0xfff) &+ (c >> shift & 0xfff) &+ (d >> shift & 0xfff)
            // Four values with four fractional bits, of which one is kept.
            return Int16(truncatingIfNeeded: (sum &+ 16) >> 5) &- 256
        }
        // A picture of an odd width repeats its last column.
        let whole = min(count, (last + 1) / 2)
        for x in 0..<whole { samples[x] = sum(upper[2 &* x], upper[2 &* x &+ 1], lower[2 &* x], lower[2 &* x &+ 1]) }
        for x in whole..<max(whole, count) { samples[x] = sum(upper[last], upper[last], lower[last], lower[last]) }
    }

    func words(y: Int) -> (first: UnsafePointer<UInt32>, step: Int) { (source + 2 * y * columns, 2) }

    func store(_ removed: UnsafePointer<Int16>, _ reach: UnsafePointer<Int32>, x left: Int, y: Int, count: Int) {
        let chroma = Component(shift: shift, largest: 0xfff, least: 0)
        let end = min(2 * count, columns - 2 * left)
        for row in 2 * y..<min(2 * y + 2, rows) {
            let words = target + (row * columns + 2 * left)
            forEachEight(removed, reach, count: count) { x, moves in
                // Half a level is eight of the canvas' units.
                let changes = (moves &+ 4) &>> 3
                let (low, high) = (changes.lowHalf, changes.highHalf)
                chroma.subtract(low.doubled, from: words + 2 * x, count: end &- 2 &* x)
                chroma.subtract(high.doubled, from: words + 2 * x + 8, count: end &- 2 &* x &- 8)
            }
        }
    }
}

/// A component of eight bits at full size: the luma of a canvas of the format ``PixelFormat/yuv(background:)``, or red, green or blue
/// of one of the format ``PixelFormat/rgba``, of which only opaque pixels move.
struct FullPlane: DitheredPlane {
    let width: Int
    let height: Int
    private let component: Component
    private let source: UnsafePointer<UInt32>
    private let target: UnsafeMutablePointer<UInt32>

    init(_ canvas: borrowing Canvas, _ output: borrowing Canvas, shift: UInt32) {
        width = canvas.width
        height = canvas.height
        let least: UInt32 = if case .rgba = canvas.format { PixelFormat.opaque } else { 0 }
        component = Component(shift: shift, largest: 0xff, least: least)
        source = UnsafePointer(canvas.pixels)
        target = output.pixels
    }

    func read(x left: Int, y: Int, count: Int, into samples: UnsafeMutablePointer<Int16>) {
        let words = source + (y * width + left)
        let shift = component.shift
        for x in 0..<count { samples[x] = Int16(truncatingIfNeeded: words[x] >> shift & 0xff) &- 128 }
    }

    func words(y: Int) -> (first: UnsafePointer<UInt32>, step: Int) { (source + y * width, 1) }

    func store(_ removed: UnsafePointer<Int16>, _ reach: UnsafePointer<Int32>, x left: Int, y: Int, count: Int) {
        let words = target + (y * width + left)
        forEachEight(removed, reach, count: count) { x, moves in
            component.subtract((moves &+ 32) &>> 6, from: words + x, count: count &- x)
        }
    }
}

extension SIMD4<Int16> {
    /// Each value twice.
    @inline(__always)
    fileprivate var doubled: SIMD8<Int16> {
        var result = SIMD8<Int16>()
        result.evenHalf = self
        result.oddHalf = self
        return result
    }
}
