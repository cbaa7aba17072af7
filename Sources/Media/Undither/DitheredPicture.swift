/// The luma of a picture for a ``TemporalFilter``. Not thread-safe.
final class DitheredPicture {
    /// The luma with dither.
    let original: BorderedPlane
    /// The output of the spatial filter.
    let undithered: BorderedPlane
    /// A blend of both: the more the spatial filter removed from a block, the more of its output.
    let mixed: BorderedPlane
    /// The largest change of each block's pixels, in levels.
    private let limits: HeapBuffer<UInt8>
    private let columns: Int

    private static let block = MotionField.block
    /// The sum of the weights of the blend.
    private static let unit: Int32 = 64

    init(width: Int, height: Int) throws(TranscodeError) {
        original = try BorderedPlane(width: width, height: height)
        undithered = try BorderedPlane(width: width, height: height)
        mixed = try BorderedPlane(width: width, height: height)
        columns = (width + Self.block - 1) / Self.block
        limits = try HeapBuffer(count: columns * ((height + Self.block - 1) / Self.block))
    }

    /// Returns the largest change of a block's pixels, in levels.
    func limit(_ column: Int, _ row: Int) -> Int32 { Int32(limits.base[row * columns + column]) }

    /// Reads a picture in the format ``PixelFormat/yuv(background:)``, with dither and without.
    func load(_ canvas: borrowing Canvas, _ undithered: borrowing Canvas, _ reach: borrowing PaletteReach) {
        original.load(canvas)
        self.undithered.load(undithered)
        for top in stride(from: 0, to: canvas.height, by: Self.block) {
            for left in stride(from: 0, to: canvas.width, by: Self.block) {
                let limit = Self.limit(canvas, left, top, reach)
                limits.base[top / Self.block * columns + left / Self.block] = limit
                mix(left, top, limit)
            }
        }
        mixed.extend()
    }

    /// Returns the mean reach of every eighth pixel of a block.
    private static func limit(
        _ canvas: borrowing Canvas, _ left: Int, _ top: Int, _ reach: borrowing PaletteReach
    ) -> UInt8 {
        var sum: Int32 = 0
        var count: Int32 = 0
        for y in stride(from: top, to: min(top + Self.block, canvas.height), by: 2) {
            let words = canvas.pixels + y * canvas.width
            for x in stride(from: left + (y / 2 & 3), to: min(left + Self.block, canvas.width), by: 4) {
                sum += reach.lookUp(words[x])
                count += 1
            }
        }
        return count == 0 ? 0 : UInt8(sum / (count * Int32(PaletteReach.unit)))
    }

    /// Writes a block of ``mixed``: only the spatial filter's output if its mean change is at least a quarter of the reach.
    private func mix(_ left: Int, _ top: Int, _ limit: UInt8) {
        let stride = original.stride
        let offset = top * stride + left
        let removed = MotionField.difference(original.samples + offset, stride, undithered.samples + offset, stride)
        let all = max(1, Int32(limit) * Int32(Self.block * Self.block) / 4)
        let part = min(Self.unit, removed * Self.unit / all)
        let weights = (Int16(truncatingIfNeeded: Self.unit - part), Int16(truncatingIfNeeded: part))
        for line in 0..<Self.block {
            let place = offset + line &* stride
            let (one, other, target) = (original.samples + place, undithered.samples + place, mixed.samples + place)
            for column in 0..<Self.block {
                let sum = Int16(one[column]) &* weights.0 &+ Int16(other[column]) &* weights.1
                target[column] = UInt8(truncatingIfNeeded: (sum &+ 32) &>> 6)
            }
        }
    }
}
