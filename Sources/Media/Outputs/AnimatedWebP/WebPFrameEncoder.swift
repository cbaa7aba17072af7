internal import CMedia

/// Encodes the pictures of an animation with libwebp: for each, the rectangle that differs from the previous picture. Not
/// thread-safe.
///
/// A rectangle either replaces the canvas or is blended over it, with transparent pixels where nothing changes. The smaller
/// result is used. If a quality is given, both are encoded lossily and losslessly.
final class WebPFrameEncoder {
    /// The efforts by pixels encoded so far: 75, then 25, then 0 for the rest of a longer animation.
    private static let efforts: [(pixels: Int, effort: Float)] = [(16 << 20, 75), (160 << 20, 25), (.max, 0)]
    /// The side of a block. In lossy frames, unchanged blocks become transparent.
    private static let block = 8

    private let width: Int
    private let height: Int
    /// 0…100; nil for lossless.
    private let quality: Float?
    /// The last encoded picture.
    private let shown: HeapBuffer<UInt32>
    private let words: HeapBuffer<UInt32>
    /// The smallest file so far, and the file that is compared with it.
    private var best = WebPMemoryWriter()
    private var other = WebPMemoryWriter()
    private var hasPicture = false
    /// Pixels encoded so far.
    private var pixels = 0
    /// Whether any picture so far has a pixel that is not opaque.
    private(set) var hasTransparency = false
    /// Whether any frame so far has alpha.
    private(set) var usesAlpha = false

    /// - Parameter quality: The option, 1…100; nil encodes losslessly.
    init(width: Int, height: Int, quality: Int?) throws(TranscodeError) {
        try WebPCoding.check(width: width, height: height)
        self.width = width
        self.height = height
        self.quality = quality.map { Float(PosterQuality.webp($0)) }
        shown = try HeapBuffer(count: width * height)
        words = try HeapBuffer(count: width * height)
        WebPMemoryWriterInit(&best)
        WebPMemoryWriterInit(&other)
    }

    deinit {
        WebPMemoryWriterClear(&best)
        WebPMemoryWriterClear(&other)
    }

    /// Encodes a picture.
    ///
    /// - Returns: The area on the canvas, whose corner has even coordinates, as the format requires, and whether transparent
    ///   pixels leave the canvas unchanged. Nil if the picture looks like the previous one.
    func encode(
        _ picture: borrowing StillPicture
    ) throws(TranscodeError) -> (rectangle: Rectangle, blends: Bool)? {
        var area = Rectangle(x: 0, y: 0, width: width, height: height)
        if hasPicture {
            let changed = PictureDifference.bounds(picture.words, shown.base, width: width, height: height)
            if changed.isEmpty { return nil }
            let (x, y) = (changed.x & ~1, changed.y & ~1)
            area = Rectangle(x: x, y: y, width: changed.maxX - x, height: changed.maxY - y)
        }
        let blends = try encode(picture.words, area)
        for y in area.y..<area.maxY {
            let offset = y * width + area.x
            (shown.base + offset).update(from: picture.words + offset, count: area.width)
        }
        hasPicture = true
        return (area, blends)
    }

    /// Calls `body` with the chunks of the last encoded picture: `VP8L`, or `VP8 ` with or without `ALPH`.
    func withChunks<Result>(
        _ body: (UnsafeRawBufferPointer) throws(TranscodeError) -> Result
    ) throws(TranscodeError) -> Result {
        var chunks = UnsafeRawBufferPointer(start: best.mem, count: best.size).dropFirst(12)
        if chunks.starts(with: "VP8X".utf8) { chunks = chunks.dropFirst(18) }
        return try body(UnsafeRawBufferPointer(rebasing: chunks))
    }

    /// Returns the chunks of a transparent pixel.
    func clearPixel() throws(TranscodeError) -> [UInt8] {
        best.size = 0
        words.base[0] = 0
        try WebPCoding.check(gifreel_webp_encode(words.base, 1, 1, -1, 0, &best))
        return try withChunks { Array($0) }
    }

    /// Encodes a rectangle of a picture. Returns whether transparent pixels leave the canvas unchanged.
    private func encode(_ picture: UnsafePointer<UInt32>, _ area: Rectangle) throws(TranscodeError) -> Bool {
        let counts = count(picture, area)
        let all = area.width * area.height
        let effort = Self.efforts.first { pixels < $0.pixels }?.effort ?? 0
        let canBlend = hasPicture && !counts.clears
        // A few pixels matter little. With the lowest effort, only the likelier method is tried.
        let most = effort > 0 ? 9 : 5
        let mayReplace = !canBlend || counts.unchanged * 10 < all * most
        let mayBlend = canBlend && (!mayReplace || (effort > 0 && counts.unchanged * 10 >= all))
        best.size = 0
        var blends = false
        for blending in [false, true] where blending ? mayBlend : mayReplace {
            if try encode(picture, area, quality: -1, effort, blending: blending, block: 1) { blends = blending }
            if let quality, try encode(picture, area, quality: quality, effort, blending: blending, block: Self.block) {
                blends = blending
            }
        }
        if counts.isTransparent { hasTransparency = true }
        if counts.isTransparent || blends { usesAlpha = true }
        return blends
    }

    /// Encodes a rectangle with one method.
    ///
    /// - Parameters:
    ///   - quality: 0…100, or negative for lossless.
    ///   - block: The side of the blocks that become transparent if unchanged, for `blending`.
    /// - Returns: Whether the result has the fewest bytes so far.
    private func encode(
        _ picture: UnsafePointer<UInt32>, _ area: Rectangle, quality: Float, _ effort: Float, blending: Bool, block: Int
    ) throws(TranscodeError) -> Bool {
        if blending { loadChanges(picture, area, block: block) } else { load(picture, area) }
        pixels += area.width * area.height
        other.size = 0
        let status = gifreel_webp_encode(words.base, Int32(area.width), Int32(area.height), quality, effort, &other)
        // The format limits the size of a lossy picture. The lossless picture is used instead.
        if quality >= 0, status == VP8_ENC_ERROR_PARTITION0_OVERFLOW || status == VP8_ENC_ERROR_PARTITION_OVERFLOW {
            return false
        }
        try WebPCoding.check(status)
        guard best.size == 0 || other.size < best.size else { return false }
        swap(&best, &other)
        return true
    }

    // MARK: Pixels

    /// Counts the unchanged pixels of a rectangle. Also returns whether any pixel is not opaque, and whether such a pixel is a
    /// change.
    private func count(
        _ picture: UnsafePointer<UInt32>, _ area: Rectangle
    ) -> (unchanged: Int, isTransparent: Bool, clears: Bool) {
        var (unchanged, lowest, lowestChange) = (0, UInt32.max, UInt32.max)
        for y in area.y..<area.maxY {
            let (new, old) = (picture + y * width + area.x, shown.base + y * width + area.x)
            for x in 0..<area.width {
                lowest = min(lowest, new[x])
                if hasPicture, new[x] == old[x] { unchanged &+= 1 } else { lowestChange = min(lowestChange, new[x]) }
            }
        }
        return (unchanged, lowest < PixelFormat.opaque, lowestChange < PixelFormat.opaque)
    }

    /// Writes a rectangle of the picture to the words for libwebp.
    private func load(_ picture: UnsafePointer<UInt32>, _ area: Rectangle) {
        for y in 0..<area.height {
            let (source, target) = (picture + (area.y + y) * width + area.x, words.base + y * area.width)
            for x in 0..<area.width { target[x] = WebPCoding.swapped(source[x]) }
        }
    }

    /// Writes the changed blocks of a rectangle to the words for libwebp. All other pixels become transparent, and so do
    /// translucent pixels, which do not change in a blended rectangle: drawn again, they would add up.
    private func loadChanges(_ picture: UnsafePointer<UInt32>, _ area: Rectangle, block: Int) {
        for top in stride(from: 0, to: area.height, by: block) {
            for left in stride(from: 0, to: area.width, by: block) {
                let rows = top..<min(top + block, area.height)
                let columns = left..<min(left + block, area.width)
                var isChanged = false
                for y in rows {
                    let start = (area.y + y) * width + area.x
                    for x in columns where picture[start + x] != shown.base[start + x] { isChanged = true }
                }
                for y in rows {
                    let (start, target) = ((area.y + y) * width + area.x, words.base + y * area.width)
                    for x in columns {
                        let isDrawn = isChanged && picture[start + x] >= PixelFormat.opaque
                        target[x] = isDrawn ? WebPCoding.swapped(picture[start + x]) : 0
                    }
                }
            }
        }
    }
}
