/// Averages a picture with its neighbours in time, block by block, along the motion.
///
/// Where a film moves, its dither differs from picture to picture and the film itself does not, so the mean is closer to the
/// film. In textures, where the spatial filter finds little dither, the pictures with dither are averaged; elsewhere, that
/// filter's outputs. A neighbour's block counts less the more it differs, and not at all beyond a bound. Where a pattern is
/// static or nothing matches, the block keeps the spatial filter's output. Only luma changes, by at most what the palette
/// explains. Not thread-safe.
final class TemporalFilter {
    /// The picture between the two neighbours, without dither.
    let output: Canvas

    /// The share of the current picture that is a mean of pictures with different dither, 0…1.
    private(set) var gain: Double = 0

    private var previous = Picture()
    private var current = Picture()
    private var next = Picture()
    /// The motion from the current picture to its neighbours.
    private let backward: MotionField
    private let forward: MotionField
    /// A block's pixels in each neighbour.
    private let before: HeapBuffer<UInt8>
    private let after: HeapBuffer<UInt8>

    private static let block = MotionField.block
    /// The mean difference of a block's samples, in 256ths, from which its neighbour is ignored. A larger bound blurs moving
    /// texture.
    private static let largestDifference: Int32 = 6 * 256
    /// The mean difference, in 256ths, from which two dithers count as independent.
    private static let independent: Int32 = 2 * 256
    /// The weight of the picture itself, and of an identical neighbour.
    private static let unit: Int32 = 64

    init(width: Int, height: Int, format: PixelFormat) throws(TranscodeError) {
        output = try Canvas(width: width, height: height, format: format)
        backward = try MotionField(width: width, height: height)
        forward = try MotionField(width: width, height: height)
        before = try HeapBuffer(count: Self.block * Self.block)
        after = try HeapBuffer(count: Self.block * Self.block)
    }

    /// Makes the newest picture the current one. Its words are in `undithered`, and ``render(hasNext:)`` completes them.
    func advance(_ undithered: borrowing Canvas) {
        swap(&previous, &current)
        swap(&current, &next)
        output.copy(undithered, current.changed)
    }

    /// Sets the newest picture, which has no dither that differs from picture to picture.
    ///
    /// - Parameter changed: Contains all changes of the spatial filter's output since the previous picture.
    func add(_ changed: Rectangle) {
        next.changed = changed
        next.isDithered = false
    }

    /// Sets the newest picture, in the format ``PixelFormat/yuv(background:)``.
    ///
    /// - Parameters:
    ///   - changed: Contains all changes of `undithered` since the previous picture.
    ///   - canvas: The picture with dither.
    ///   - undithered: The output of the spatial filter.
    ///   - reach: The largest change per colour.
    /// - Throws: ``TranscodeError/outOfMemory``, for the first pictures.
    func add(
        _ changed: Rectangle, of canvas: borrowing Canvas, _ undithered: borrowing Canvas, _ reach: borrowing PaletteReach
    ) throws(TranscodeError) {
        let luma = if let luma = next.luma { luma } else { try DitheredPicture(width: canvas.width, height: canvas.height) }
        luma.load(canvas, undithered, reach)
        next = Picture(changed: changed, isDithered: true, luma: luma)
    }

    /// Completes the current picture.
    ///
    /// - Parameter hasNext: Whether there is a newer picture.
    /// - Returns: A rectangle that contains all changes of ``output``.
    func render(hasNext: Bool) -> Rectangle {
        gain = 0
        guard let own = current.dithered else { return current.changed }
        let area = current.changed.union(previous.changed).union(hasNext ? next.changed : .empty)
        let side = Self.block
        let columns = area.x / side..<(area.maxX + side - 1) / side
        let rows = area.y / side..<(area.maxY + side - 1) / side
        let (earlier, later) = (previous.dithered, hasNext ? next.dithered : nil)
        if let earlier { backward.search(columns, rows, of: own.undithered, in: earlier.undithered, hint: forward) }
        if let later { forward.search(columns, rows, of: own.undithered, in: later.undithered, hint: backward) }
        var gains: Int32 = 0
        for row in rows {
            for column in columns {
                let one = neighbour(earlier, backward, of: own, column, row, into: before.base)
                let two = neighbour(later, forward, of: own, column, row, into: after.base)
                gains += min(Self.unit, one.gain + two.gain)
                write(own, column, row, one, two)
            }
        }
        gain = Double(gains) / Double(Int32(backward.columns * backward.rows) * Self.unit)
        return Rectangle(
            x: columns.lowerBound * side, y: rows.lowerBound * side, width: columns.count * side, height: rows.count * side
        ).clipped(toWidth: output.width, height: output.height)
    }

    /// The contribution of a neighbour to a block.
    private struct Neighbour {
        var weight: Int32 = 0
        /// The effective weight: zero where the neighbour has the same dither.
        var gain: Int32 = 0
    }

    /// Reads a block's pixels in a neighbour, and weighs them.
    private func neighbour(
        _ other: DitheredPicture?, _ field: MotionField, of own: DitheredPicture, _ column: Int, _ row: Int,
        into pixels: UnsafeMutablePointer<UInt8>
    ) -> Neighbour {
        guard let other else { return Neighbour() }
        let difference = field[column, row].difference
        guard difference < Self.largestDifference else { return Neighbour() }
        // Tukey's biweight.
        let ratio = difference * 16 / Self.largestDifference
        let rest = 256 - ratio * ratio
        let weight = rest * rest * Self.unit / (256 * 256)
        field.read(other.mixed, column, row, into: pixels)
        let stride = own.mixed.stride
        let samples = own.mixed.samples + Self.block * (row * stride + column)
        let noise = MotionField.difference(samples, stride, pixels, Self.block)
        return Neighbour(weight: weight, gain: weight * min(noise, Self.independent) / Self.independent)
    }

    /// Writes the luma of a block.
    private func write(_ own: DitheredPicture, _ column: Int, _ row: Int, _ one: Neighbour, _ two: Neighbour) {
        // The weights of a mean, whose sum is 128.
        let total = Self.unit + one.weight + two.weight
        let (first, second) = (one.weight * 128 / total, two.weight * 128 / total)
        @inline(__always) func all(_ value: Int32) -> SIMD16<Int16> { SIMD16(repeating: Int16(truncatingIfNeeded: value)) }
        let weights = (all(128 - first - second), all(first), all(second))
        let gain = min(Self.unit, one.gain + two.gain)
        let (temporal, spatial) = (all(gain), all(Self.unit - gain))
        let limit = all(own.limit(column, row))
        let stride = own.original.stride
        let (left, top) = (column * Self.block, row * Self.block)
        let offset = top * stride + left
        let count = min(Self.block, output.width - left)
        for line in 0..<min(Self.block, output.height - top) {
            let original = Self.load(own.original.samples + (offset + line * stride))
            // Sums of 128 × 255 at most.
            var mean = Self.load(own.mixed.samples + (offset + line * stride)) &* weights.0
            mean &+= Self.load(before.base + line * Self.block) &* weights.1
            mean &+= Self.load(after.base + line * Self.block) &* weights.2
            mean = (mean &+ 64) &>> 7
            var mixed = mean &* temporal
            mixed &+= Self.load(own.undithered.samples + (offset + line * stride)) &* spatial
            mixed = (mixed &+ 32) &>> 6
            let (lower, upper) = (original &- limit, original &+ limit)
            // A bound that applies lies between both values, so the result stays within 0…255.
            mixed.replace(with: lower, where: mixed .< lower)
            mixed.replace(with: upper, where: mixed .> upper)
            let words = output.pixels + ((top + line) * output.width + left)
            if count == Self.block {
                let address = UnsafeMutableRawPointer(words)
                let kept = address.loadUnaligned(as: SIMD16<UInt32>.self) & ~0xff
                address.storeBytes(of: kept | SIMD16<UInt32>(truncatingIfNeeded: mixed), as: SIMD16<UInt32>.self)
            } else {
                for x in 0..<count { words[x] = words[x] & ~0xff | UInt32(truncatingIfNeeded: mixed[x]) }
            }
        }
    }

    @inline(__always)
    private static func load(_ samples: UnsafePointer<UInt8>) -> SIMD16<Int16> {
        SIMD16<Int16>(truncatingIfNeeded: UnsafeRawPointer(samples).loadUnaligned(as: SIMD16<UInt8>.self))
    }
}

extension TemporalFilter {
    private struct Picture {
        var changed = Rectangle.empty
        var isDithered = false
        /// The luma of an earlier picture if this one has no dither.
        var luma: DitheredPicture?

        var dithered: DitheredPicture? { isDithered ? luma : nil }
    }
}
