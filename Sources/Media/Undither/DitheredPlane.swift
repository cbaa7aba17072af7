/// One plane of a canvas: how its samples are read, and how what dither adds is taken away from the output.
protocol DitheredPlane {
    associatedtype Row: DitheredRow
    var width: Int { get }
    var height: Int { get }
    func row(_ y: Int) -> Row
    /// Subtracts from a row of the output.
    ///
    /// - Parameters:
    ///   - removed: In units of 1/``DitherRemover/unit`` of a sample.
    ///   - reach: The sums of the cells that the samples lie in.
    func store(_ removed: UnsafePointer<Int16>, _ reach: UnsafePointer<Int32>, x: Int, y: Int, count: Int)
}

/// A row of a plane.
protocol DitheredRow {
    /// The sample, zero in the middle of its range, and the reach of its colour.
    func read(_ x: Int, _ reach: borrowing PaletteReach) -> (sample: Int16, reach: Int32)
}

/// What a sample moves, which is at most the mean reach of its cell.
@inline(__always)
private func bounded(_ removed: Int16, _ reach: Int32) -> Int32 {
    // Sixteen quarters of a level and 128 units: twice the sum.
    let limit = reach &* Int32(DitherRemover.unit / 16 / PaletteReach.unit)
    return min(max(Int32(removed), 0 &- limit), limit)
}

/// The luma of a canvas of the format ``PixelFormat/yuv(background:)``.
struct LumaPlane: DitheredPlane {
    let width: Int
    let height: Int
    private let source: UnsafePointer<UInt32>
    private let target: UnsafeMutablePointer<UInt32>

    init(_ canvas: borrowing Canvas, _ output: borrowing Canvas) {
        width = canvas.width
        height = canvas.height
        source = UnsafePointer(canvas.pixels)
        target = output.pixels
    }

    struct Row: DitheredRow {
        let words: UnsafePointer<UInt32>

        @inline(__always)
        func read(_ x: Int, _ reach: borrowing PaletteReach) -> (sample: Int16, reach: Int32) {
            (Int16(truncatingIfNeeded: words[x] & 0xff) &- 128, reach.lookUp(words[x]))
        }
    }

    func row(_ y: Int) -> Row { Row(words: source + y * width) }

    func store(_ removed: UnsafePointer<Int16>, _ reach: UnsafePointer<Int32>, x left: Int, y: Int, count: Int) {
        let words = target + (y * width + left)
        for x in 0..<count where removed[x] != 0 {
            let change = (bounded(removed[x], reach[x &>> 2]) &+ 64) &>> 7
            let luma = Int32(truncatingIfNeeded: words[x] & 0xff) &- change
            words[x] = words[x] & 0xffff_ff00 | UInt32(truncatingIfNeeded: min(max(luma, 0), 255))
        }
    }
}

/// Cb or Cr of such a canvas: means of 2 × 2 pixels in units of half a level.
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

    struct Row: DitheredRow {
        let upper: UnsafePointer<UInt32>
        let lower: UnsafePointer<UInt32>
        let last: Int
        let shift: UInt32

        @inline(__always)
        func read(_ x: Int, _ reach: borrowing PaletteReach) -> (sample: Int16, reach: Int32) {
            let left = 2 &* x
            let right = min(left &+ 1, last)
            let sum =
                (upper[left] >> shift & 0xfff) &+ (upper[right] >> shift & 0xfff) &+ (lower[left] >> shift & 0xfff)
                &+ (lower[right] >> shift & 0xfff)
            // Four values with four fractional bits, of which one is kept.
            return (Int16(truncatingIfNeeded: (sum &+ 16) >> 5) &- 256, reach.lookUp(upper[left]))
        }
    }

    func row(_ y: Int) -> Row {
        Row(
            upper: source + 2 * y * columns, lower: source + min(2 * y + 1, rows - 1) * columns, last: columns - 1, shift: shift
        )
    }

    func store(_ removed: UnsafePointer<Int16>, _ reach: UnsafePointer<Int32>, x left: Int, y: Int, count: Int) {
        let mask = UInt32(0xfff) << shift
        for row in 2 * y..<min(2 * y + 2, rows) {
            let words = target + (row * columns + 2 * left)
            for x in 0..<min(2 * count, columns - 2 * left) where removed[x &>> 1] != 0 {
                // Half a level is eight of the canvas' units.
                let change = (bounded(removed[x &>> 1], reach[x &>> 3]) &+ 8) &>> 4
                let value = Int32(truncatingIfNeeded: words[x] >> shift & 0xfff) &- change
                words[x] = words[x] & ~mask | UInt32(truncatingIfNeeded: min(max(value, 0), 0xfff)) << shift
            }
        }
    }
}

/// Red, green or blue of a canvas of the format ``PixelFormat/rgba``. Only opaque pixels move.
struct ComponentPlane: DitheredPlane {
    let width: Int
    let height: Int
    private let shift: UInt32
    private let source: UnsafePointer<UInt32>
    private let target: UnsafeMutablePointer<UInt32>

    init(_ canvas: borrowing Canvas, _ output: borrowing Canvas, shift: UInt32) {
        width = canvas.width
        height = canvas.height
        self.shift = shift
        source = UnsafePointer(canvas.pixels)
        target = output.pixels
    }

    struct Row: DitheredRow {
        let words: UnsafePointer<UInt32>
        let shift: UInt32

        @inline(__always)
        func read(_ x: Int, _ reach: borrowing PaletteReach) -> (sample: Int16, reach: Int32) {
            (Int16(truncatingIfNeeded: words[x] >> shift & 0xff) &- 128, reach.lookUp(words[x]))
        }
    }

    func row(_ y: Int) -> Row { Row(words: source + y * width, shift: shift) }

    func store(_ removed: UnsafePointer<Int16>, _ reach: UnsafePointer<Int32>, x left: Int, y: Int, count: Int) {
        let words = target + (y * width + left)
        for x in 0..<count where removed[x] != 0 && words[x] >= PixelFormat.opaque {
            let change = (bounded(removed[x], reach[x &>> 2]) &+ 64) &>> 7
            let value = Int32(truncatingIfNeeded: words[x] >> shift & 0xff) &- change
            words[x] = words[x] & ~(0xff << shift) | UInt32(truncatingIfNeeded: min(max(value, 0), 255)) << shift
        }
    }
}
