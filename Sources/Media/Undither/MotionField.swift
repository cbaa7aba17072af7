/// The motion of a picture's blocks to another picture.
///
/// Blocks have 16 × 16 pixels. A search starts from the motion of neighbours and of the same block in an earlier field, and
/// steps to the best adjacent position while that improves the match. The result is refined to half pixels. Not thread-safe.
final class MotionField {
    /// The side of a block.
    static let block = 16
    private static let pixels = block * block

    /// The motion of a block.
    struct Vector: Equatable {
        /// From the position in the picture to the position in the other picture, in half pixels.
        var x: Int16 = 0
        var y: Int16 = 0
        /// The sum of the absolute differences of the block's pixels.
        var difference = Int32.max
    }

    let columns: Int
    let rows: Int
    private let vectors: HeapBuffer<Vector>
    private let interpolated: HeapBuffer<UInt8>

    /// The farthest position of a block outside the picture, in pixels. Interpolation reads two more pixels.
    private static let farthest = BorderedPlane.border - 2
    /// The difference below which half pixels are not tried: one level on average.
    private static let close = Int32(pixels)
    /// The longest motion in each direction, in pixels.
    private static let longest = 1000
    /// The maximum number of one-pixel steps from the best candidate.
    private static let mostSteps = 8

    init(width: Int, height: Int) throws(TranscodeError) {
        columns = (width + Self.block - 1) / Self.block
        rows = (height + Self.block - 1) / Self.block
        vectors = try HeapBuffer(repeating: Vector(), count: columns * rows)
        interpolated = try HeapBuffer(count: Self.pixels)
    }

    subscript(column: Int, row: Int) -> Vector { vectors.base[row * columns + column] }

    /// Finds the motion of blocks from one picture to another. All other blocks get no motion.
    ///
    /// - Parameter hint: A motion in the opposite direction.
    func search(
        _ columns: Range<Int>, _ rows: Range<Int>, of picture: BorderedPlane, in other: BorderedPlane, hint: MotionField
    ) {
        vectors.base.update(repeating: Vector(), count: self.columns * self.rows)
        for row in rows {
            for column in columns {
                vectors.base[row * self.columns + column] = find(picture, other, column, row, hint)
            }
        }
    }

    private func find(
        _ picture: BorderedPlane, _ other: BorderedPlane, _ column: Int, _ row: Int, _ hint: MotionField
    ) -> Vector {
        let block = picture.samples + Self.block * (row * picture.stride + column)
        let stride = picture.stride
        let start = other.samples + (block - picture.samples)
        var best = (x: 0, y: 0, difference: Self.difference(block, stride, start, stride))
        if best.difference == 0 { return Vector(difference: 0) }
        func isInside(_ x: Int, _ y: Int) -> Bool {
            let (left, top) = (column * Self.block + x, row * Self.block + y)
            guard abs(x) <= Self.longest, abs(y) <= Self.longest else { return false }
            return left >= -Self.farthest && left <= columns * Self.block - Self.block + Self.farthest
                && top >= -Self.farthest && top <= rows * Self.block - Self.block + Self.farthest
        }
        /// Returns the difference at a position in whole pixels.
        func measure(_ x: Int, _ y: Int) -> Int32 {
            guard isInside(x, y) else { return .max }
            let place = other.samples + ((row * Self.block + y) * other.stride + column * Self.block + x)
            let difference = Self.difference(block, stride, place, stride)
            if difference < best.difference { best = (x, y, difference) }
            return difference
        }
        func tryNear(_ vector: Vector, _ sign: Int) {
            let (x, y) = ((sign * Int(vector.x)) >> 1, (sign * Int(vector.y)) >> 1)
            if x != best.x || y != best.y, x != 0 || y != 0 { _ = measure(x, y) }
        }
        tryNear(hint[column, row], -1)
        if row + 1 < rows, column + 1 < columns { tryNear(hint[column + 1, row + 1], -1) }
        if column > 0 { tryNear(self[column - 1, row], 1) }
        if row > 0 {
            tryNear(self[column, row - 1], 1)
            if column + 1 < columns { tryNear(self[column + 1, row - 1], 1) }
        }
        var (left, right, above, below) = (Int32.max, Int32.max, Int32.max, Int32.max)
        for _ in 0..<Self.mostSteps {
            let (x, y) = (best.x, best.y)
            left = measure(x - 1, y)
            right = measure(x + 1, y)
            above = measure(x, y - 1)
            below = measure(x, y + 1)
            if best.x == x && best.y == y { break }
        }
        var result = Vector(x: Int16(2 * best.x), y: Int16(2 * best.y), difference: best.difference)
        if result.difference < Self.close { return result }
        // The better neighbour determines the direction of the half pixel.
        let (x, y) = (2 * best.x + (left < right ? -1 : 1), 2 * best.y + (above < below ? -1 : 1))
        for (x, y) in [(x, 2 * best.y), (2 * best.x, y), (x, y)] where isInside(x >> 1, y >> 1) {
            Self.read(other, column, row, x, y, into: interpolated.base)
            let difference = Self.difference(block, stride, interpolated.base, Self.block)
            if difference < result.difference { result = Vector(x: Int16(x), y: Int16(y), difference: difference) }
        }
        return result
    }

    /// Reads a block's pixels at its position in the other picture, row by row.
    func read(_ other: BorderedPlane, _ column: Int, _ row: Int, into pixels: UnsafeMutablePointer<UInt8>) {
        let vector = self[column, row]
        Self.read(other, column, row, Int(vector.x), Int(vector.y), into: pixels)
    }

    private static func read(
        _ other: BorderedPlane, _ column: Int, _ row: Int, _ x: Int, _ y: Int, into pixels: UnsafeMutablePointer<UInt8>
    ) {
        let stride = other.stride
        let place = other.samples + ((row * block + (y >> 1)) * stride + column * block + (x >> 1))
        switch (x & 1, y & 1) {
        case (0, 0):
            for line in 0..<block { (pixels + line * block).update(from: place + line * stride, count: block) }
        case (1, 0): interpolate(place, stride, along: 1, into: pixels)
        case (0, 1): interpolate(place, stride, along: stride, into: pixels)
        default:
            // The mean of four pixels is accurate enough for the diagonal.
            for line in 0..<block {
                let (upper, lower) = (place + line &* stride, place + (line &+ 1) &* stride)
                for column in 0..<block {
                    let sum = UInt16(upper[column]) &+ UInt16(upper[column &+ 1]) &+ UInt16(lower[column])
                    pixels[line &* block &+ column] = UInt8(
                        truncatingIfNeeded: (sum &+ UInt16(lower[column &+ 1]) &+ 2) &>> 2)
                }
            }
        }
    }

    /// Reads the values halfway to the next samples in a direction, from a cubic curve through four. The compiler vectorizes
    /// it.
    @inline(__always)
    private static func interpolate(
        _ place: UnsafePointer<UInt8>, _ stride: Int, along step: Int, into pixels: UnsafeMutablePointer<UInt8>
    ) {
        for line in 0..<block {
            let source = place + line &* stride
            for column in 0..<block {
                let inner = Int16(source[column]) &+ Int16(source[column &+ step])
                let outer = Int16(source[column &- step]) &+ Int16(source[column &+ 2 &* step])
                let value = (inner &* 9 &- outer &+ 8) &>> 4
                pixels[line &* block &+ column] = UInt8(truncatingIfNeeded: max(0, min(255, value)))
            }
        }
    }

    /// Returns the sum of absolute differences of two blocks. The compiler emits one instruction per row.
    @inline(__always)
    static func difference(
        _ one: UnsafePointer<UInt8>, _ stride: Int, _ other: UnsafePointer<UInt8>, _ otherStride: Int
    ) -> Int32 {
        var sum: Int32 = 0
        for line in 0..<block {
            let (a, b) = (one + line &* stride, other + line &* otherStride)
            for column in 0..<block {
                let difference = Int32(a[column]) &- Int32(b[column])
                sum &+= difference < 0 ? 0 &- difference : difference
            }
        }
        return sum
    }
}
