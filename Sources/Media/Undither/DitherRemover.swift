/// Finds the dither in a plane, band by band.
///
/// Of the 8 × 8 blocks that overlap by half, every second one is transformed, so that each sample lies in two blocks.
/// Coefficients below the amplitude of the dither are removed. Larger coefficients are reduced less the larger they are: edges
/// and texture exceed the amplitude, and gradients lie in the lowest frequencies, where dither has almost no energy. The result
/// is the mean of the two blocks over each sample. Not thread-safe.
final class DitherRemover {
    /// The side of a cell in samples, which is the distance between blocks.
    static let cell = 4
    static let bandCells = 16
    /// The unit of ``removed``.
    static let unit = 64

    /// Cells in a row, without the border of one cell on each side.
    private(set) var columns = 0
    /// Samples from one row to the next.
    private var stride: Int { Self.cell * (columns + 2) }
    /// The samples of the band, centred on zero, with a border of one cell.
    private let samples: HeapBuffer<Int16>
    /// The dither in each sample, in units of 1/``unit``.
    private let removed: HeapBuffer<Int16>
    /// The sum of the reach of each cell's sixteen pixels, with a border.
    private let reach: HeapBuffer<Int32>

    /// - Parameter width: The largest width of a part.
    init(width: Int) throws(TranscodeError) {
        let columns = Self.columns(width) + 2
        let rows = Self.bandCells + 2
        samples = try HeapBuffer(count: columns * rows * Self.cell * Self.cell)
        removed = try HeapBuffer(count: columns * rows * Self.cell * Self.cell)
        reach = try HeapBuffer(count: columns * rows)
    }

    private static func columns(_ width: Int) -> Int { (width + cell - 1) / cell }

    /// Prepares for bands of a part of the plane.
    func begin(width: Int) { columns = Self.columns(width) }

    /// Returns a row of samples from the first in the picture. `row` counts from the band's first row, inside the border.
    func sampleRow(_ row: Int) -> UnsafeMutablePointer<Int16> { samples.base + (row + Self.cell) * stride + Self.cell }

    func removedRow(_ row: Int) -> UnsafePointer<Int16> {
        UnsafePointer(removed.base + (row + Self.cell) * stride + Self.cell)
    }

    /// The cells of a row, starting at the first in the picture.
    func reachRow(_ row: Int) -> UnsafeMutablePointer<Int32> { reach.base + (row + 1) * (columns + 2) + 1 }

    func clearReach(row: Int) { (reachRow(row) - 1).update(repeating: 0, count: columns + 2) }

    /// Computes ``removed`` for a band.
    ///
    /// - Parameter rows: The rows of cells. Samples and reach must be set for these and one more row on each side.
    func run(rows: Int, _ strength: DitherStrength) {
        removed.base.update(repeating: 0, count: stride * Self.cell * (rows + 2))
        strength.perReach.withUnsafeBufferPointer { perReach in
            strength.fixed.withUnsafeBufferPointer { fixed in
                DitherStrength.weights.withUnsafeBufferPointer { weights in
                    guard let perReach = perReach.baseAddress, let fixed = fixed.baseAddress, let weights = weights.baseAddress
                    else { return }
                    let tables = Tables(perReach: perReach, fixed: fixed, weights: weights)
                    for row in 0...rows {
                        let upper = reach.base + row * (columns + 2)
                        let lower = upper + columns + 2
                        // The blocks alternate from row to row. A band begins with an even cell of the picture.
                        for column in Swift.stride(from: row & 1, through: columns, by: 2) {
                            let sum = upper[column] &+ upper[column &+ 1] &+ lower[column] &+ lower[column &+ 1]
                            // The mean of 64 pixels.
                            let level = Int16(truncatingIfNeeded: sum &>> 6)
                            if level == 0 { continue }
                            remove(at: row &* Self.cell &* stride &+ column &* Self.cell, level, tables)
                        }
                    }
                }
            }
        }
    }

    private struct Tables {
        let perReach: UnsafePointer<SIMD8<Int16>>
        let fixed: UnsafePointer<SIMD8<Int16>>
        let weights: UnsafePointer<SIMD8<Int16>>

        /// Returns the weighted dither in a row of coefficients: all of a coefficient up to the threshold, less above it, and
        /// nothing beyond three times the threshold.
        @inline(__always)
        func dither(_ row: SIMD8<Int16>, _ index: Int, _ levels: SIMD8<Int16>) -> SIMD8<Int16> {
            let threshold = ((perReach[index] &* levels) &>> 7).atLeast(fixed[index])
            let sign = row &>> 15
            let size = (row ^ sign) &- sign
            let part = size.atMost((threshold &+ threshold &+ threshold &- size) &>> 1).atLeast(SIMD8())
            return ((part ^ sign) &- sign) &* weights[index]
        }
    }

    /// Adds the dither of one block to ``removed``.
    @inline(__always)
    private func remove(at offset: Int, _ level: Int16, _ tables: Tables) {
        var block = TransformBlock(UnsafePointer(samples.base + offset), stride: stride)
        block.forward()
        let levels = SIMD8<Int16>(repeating: level)
        let r = block.rows
        block.rows = (
            tables.dither(r.0, 0, levels), tables.dither(r.1, 1, levels), tables.dither(r.2, 2, levels),
            tables.dither(r.3, 3, levels), tables.dither(r.4, 4, levels), tables.dither(r.5, 5, levels),
            tables.dither(r.6, 6, levels), tables.dither(r.7, 7, levels)
        )
        block.inverse()
        let target = UnsafeMutableRawPointer(removed.base + offset)
        let bytes = stride &* 2
        @inline(__always) func add(_ row: SIMD8<Int16>, _ index: Int) {
            let old = target.loadUnaligned(fromByteOffset: index &* bytes, as: SIMD8<Int16>.self)
            target.storeBytes(of: old &+ row, toByteOffset: index &* bytes, as: SIMD8<Int16>.self)
        }
        let s = block.rows
        add(s.0, 0)
        add(s.1, 1)
        add(s.2, 2)
        add(s.3, 3)
        add(s.4, 4)
        add(s.5, 5)
        add(s.6, 6)
        add(s.7, 7)
    }
}
