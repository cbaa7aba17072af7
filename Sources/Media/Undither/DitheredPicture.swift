/// The luma of a picture, as a ``TemporalFilter`` needs it. Not thread-safe.
final class DitheredPicture {
    /// With dither.
    let original: BorderedPlane
    /// As the spatial filter made it.
    let undithered: BorderedPlane
    /// Between both: the more that filter took out of a block, the more of what it made.
    let mixed: BorderedPlane
    /// How far the pixels of each block may move, in levels.
    private let limits: HeapBuffer<UInt8>
    private let columns: Int

    private static let block = MotionField.block
    /// The sum of the weights of a mixture.
    private static let unit: Int32 = 64

    init(width: Int, height: Int) throws(TranscodeError) {
        original = try BorderedPlane(width: width, height: height)
        undithered = try BorderedPlane(width: width, height: height)
        mixed = try BorderedPlane(width: width, height: height)
        columns = (width + Self.block - 1) / Self.block
        limits = try HeapBuffer(count: columns * ((height + Self.block - 1) / Self.block))
    }

    /// How far the pixels of a block may move, in levels.
    func limit(_ column: Int, _ row: Int) -> Int32 { Int32(limits.base[row * columns + column]) }

    /// Reads a picture in the format ``PixelFormat/yuv(background:)``.
    ///
    /// - Parameters:
    ///   - canvas: With dither.
    ///   - undithered: As the spatial filter made it.
    ///   - reach: Gives how far pixels may move.
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

    /// The mean reach of every eighth pixel of a block.
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

    /// Writes a block of ``mixed``. The spatial filter has found all where it took a quarter of the reach out in the mean.
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
