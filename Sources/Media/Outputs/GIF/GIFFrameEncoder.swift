/// Encodes the pictures of an animation as frames of a GIF. Not thread-safe.
///
/// A picture is encoded once the next one is known, which determines the disposal of its rectangle: keep it, clear it, or
/// restore the canvas. The encoder chooses the possible disposal that leaves the next picture the fewest changes.
final class GIFFrameEncoder {
    /// A frame without its time.
    struct Frame {
        let rectangle: Rectangle
        let disposal: AnimationFrame.Disposal
        /// The colour table; empty for the global palette.
        let palette: [UInt8]
        let transparent: UInt8?
    }

    private let width: Int
    private let height: Int
    /// 1…100; nil for lossless.
    private let quality: Int?
    /// The canvas onto which the picture is drawn.
    private let base: HeapBuffer<UInt32>
    /// The picture that waits for the next one.
    private let held: HeapBuffer<UInt32>
    private let indices: HeapBuffer<UInt8>
    private let mayBeTransparent: HeapBuffer<UInt8>
    private let distances: HeapBuffer<Int32>
    private var best: GIFCompressor
    private var other: GIFCompressor
    private var quantizer: ColorQuantizer?
    /// Whether every frame so far has the exact colours of its picture, if no quality is given.
    private(set) var isExact = true
    private var isFirst = true
    private(set) var hasPicture = false
    /// Whether any picture so far has a transparent pixel.
    private(set) var hasTransparency = false
    /// The colours of frames without a palette of their own.
    private(set) var global = IndexedPalette(hasTransparency: true)

    init(width: Int, height: Int, quality: Int?) throws(TranscodeError) {
        self.width = width
        self.height = height
        self.quality = quality
        let count = width * height
        base = try HeapBuffer(repeating: 0, count: count)
        held = try HeapBuffer(count: count)
        indices = try HeapBuffer(count: count)
        mayBeTransparent = try HeapBuffer(count: count)
        distances = try HeapBuffer(repeating: 0, count: 256 * 256)
        best = try GIFCompressor(pixels: count)
        other = try GIFCompressor(pixels: count)
    }

    /// The compressed indices of the last encoded frame.
    var bytes: UnsafeRawBufferPointer { best.bytes }

    /// Whether a picture looks like the previous one. Makes its pixels either opaque or transparent, as GIF requires.
    func isRepetition(_ picture: borrowing StillPicture) -> Bool {
        for index in 0..<width * height {
            let word = picture.words[index]
            picture.words[index] = word >> 31 == 0 ? 0 : word | PixelFormat.opaque
        }
        return hasPicture && PictureDifference.bounds(picture.words, held.base, width: width, height: height).isEmpty
    }

    /// Sets the next picture, for which ``isRepetition(_:)`` was false.
    ///
    /// - Returns: The frame of the previous picture; nil for the first picture.
    func add(_ picture: borrowing StillPicture) throws(TranscodeError) -> Frame? {
        let frame = hasPicture ? try encode(before: picture.words) : nil
        held.base.update(from: picture.words, count: width * height)
        hasPicture = true
        return frame
    }

    /// Encodes the waiting picture, which the next frame shows again.
    func repeatPicture() throws(TranscodeError) -> Frame {
        let frame = try finish()
        base.base.update(from: held.base, count: width * height)
        return frame
    }

    /// Encodes the last picture.
    func finish() throws(TranscodeError) -> Frame {
        try encode(changes, disposal: .keep)
    }

    // MARK: Disposal

    /// The rectangle in which the picture differs from the canvas, which is transparent before the first one.
    private var changes: Rectangle { PictureDifference.bounds(held.base, base.base, width: width, height: height) }

    /// Encodes the waiting picture, and sets the canvas for the next one.
    private func encode(before next: UnsafePointer<UInt32>) throws(TranscodeError) -> Frame {
        var area = changes
        var disposal = disposal(before: next, &area)
        // Restoring the canvas before the first frame clears it.
        if isFirst, disposal == .restore { disposal = .clear }
        let frame = try encode(area, disposal: disposal)
        if disposal != .restore { base.base.update(from: held.base, count: width * height) }
        if disposal == .clear {
            for y in area.y..<area.maxY { (base.base + y * width + area.x).update(repeating: 0, count: area.width) }
        }
        return frame
    }

    /// Chooses the disposal of the picture's rectangle, which grows if more pixels must become transparent.
    private func disposal(before next: UnsafePointer<UInt32>, _ area: inout Rectangle) -> AnimationFrame.Disposal {
        var cleared = Rectangle.empty
        var (kept, restored) = (0, 0)
        var canRestore = true
        for y in 0..<height {
            var (left, right) = (width, 0)
            for index in y * width..<(y + 1) * width {
                let (word, now, before) = (next[index], held.base[index], base.base[index])
                if word != now { kept &+= 1 }
                if word != before { restored &+= 1 }
                if word == 0 {
                    if before != 0 { canRestore = false }
                    if now != 0 { (left, right) = (min(left, index &- y &* width), index &- y &* width &+ 1) }
                }
            }
            if right > 0 { cleared = cleared.union(Rectangle(x: left, y: y, width: right - left, height: 1)) }
        }
        if cleared.isEmpty { return canRestore && restored < kept ? .restore : .keep }
        let whole = area.union(cleared)
        var changed = 0
        for y in 0..<height {
            for x in 0..<width {
                let index = y &* width &+ x
                let isInside = y >= whole.y && y < whole.maxY && x >= whole.x && x < whole.maxX
                if next[index] != (isInside ? 0 : held.base[index]) { changed &+= 1 }
            }
        }
        if canRestore && restored <= changed { return .restore }
        area = whole
        return .clear
    }

    // MARK: Colours

    private func encode(_ area: Rectangle, disposal: AnimationFrame.Disposal) throws(TranscodeError) -> Frame {
        defer { isFirst = false }
        // A frame has at least one pixel.
        let area = area.isEmpty ? Rectangle(x: 0, y: 0, width: 1, height: 1) : area
        let counts = ColorCounts(held.base, over: base.base, area, stride: width)
        let isCropped = isFirst && (area.width < width || area.height < height)
        if counts.hasTransparency || isCropped { hasTransparency = true }
        var colors = counts.sorted
        // With 256 colours, no index is left for transparent pixels: unchanged pixels then need colours of the palette.
        let canBeTransparent = colors?.count != 256
        if let all = colors, !canBeTransparent, !isCovered(area, by: Self.palette(all, hasTransparency: false)) { colors = nil }
        guard let colors else { return try encodeQuantized(area, disposal) }
        var (shared, chosen) = (global, global)
        var least = Int.max
        var frame = Frame(rectangle: area, disposal: disposal, palette: [], transparent: 0)
        var bits = 9
        if canBeTransparent, colors.allSatisfy({ shared.add($0) }) {
            load(area, shared)
            bits = leastBits(area)
            if compress(area, shared, bits: bits, tableLength: 0, &least) { chosen = shared }
        }
        let own = Self.palette(colors, hasTransparency: canBeTransparent && counts.hasUnchanged)
        if own.bits < bits {
            load(area, own)
            if compress(area, own, bits: own.bits, tableLength: own.bytes.count, &least) {
                frame = Frame(
                    rectangle: area, disposal: disposal, palette: own.bytes, transparent: own.hasTransparency ? 0 : nil)
                chosen = global
            }
        }
        global = chosen
        return frame
    }

    private static func palette(_ colors: [UInt32], hasTransparency: Bool) -> IndexedPalette {
        var palette = IndexedPalette(hasTransparency: hasTransparency)
        for color in colors { _ = palette.add(color) }
        return palette
    }

    /// Whether a palette has the colours of all pixels of a rectangle.
    private func isCovered(_ area: Rectangle, by palette: IndexedPalette) -> Bool {
        for y in area.y..<area.maxY {
            for x in area.x..<area.maxX where palette.index(of: held.base[y * width + x]) == nil { return false }
        }
        return true
    }

    /// Encodes a rectangle whose changes have more colours than a palette.
    private func encodeQuantized(
        _ area: Rectangle, _ disposal: AnimationFrame.Disposal
    ) throws(TranscodeError) -> Frame {
        isExact = false
        if quantizer == nil { quantizer = try ColorQuantizer() }
        quantizer?.begin()
        forEachPixel(area) { _, word, isChanged in if isChanged { quantizer?.count(word) } }
        let colors = quantizer?.palette(255) ?? []
        let palette = Self.palette(colors, hasTransparency: true)
        let nearest = colors.map { palette.index(of: $0) ?? 0 }
        forEachPixel(area) { place, word, isChanged in
            let index = isChanged ? nearest[quantizer?.index(of: word) ?? 0] : palette.index(of: word) ?? 0
            indices.base[place] = index
            mayBeTransparent.base[place] = isChanged ? 0 : 1
        }
        var least = Int.max
        _ = compress(area, palette, bits: palette.bits, tableLength: 0, &least)
        return Frame(rectangle: area, disposal: disposal, palette: palette.bytes, transparent: 0)
    }

    // MARK: Indices

    /// Writes the indices of a rectangle, and which of them may be transparent.
    private func load(_ area: Rectangle, _ palette: IndexedPalette) {
        var last: (word: UInt32, index: UInt8?) = (0, palette.hasTransparency ? 0 : nil)
        forEachPixel(area) { place, word, isChanged in
            if word != last.word { last = (word, word == 0 ? nil : palette.index(of: word)) }
            indices.base[place] = last.index ?? 0
            mayBeTransparent.base[place] = isChanged || !palette.hasTransparency ? 0 : 1
        }
    }

    /// Returns the bits of the indices. Makes unchanged pixels transparent whose indices would need more bits.
    private func leastBits(_ area: Rectangle) -> Int {
        var highest: UInt8 = 1
        for place in 0..<area.width * area.height where mayBeTransparent.base[place] == 0 {
            highest = max(highest, indices.base[place])
        }
        let bits = IndexedPalette.bits(Int(highest) + 1)
        for place in 0..<area.width * area.height where Int(indices.base[place]) >> bits > 0 { indices.base[place] = 0 }
        return bits
    }

    /// Compresses the indices in each equivalent way: unchanged pixels have their colours, are transparent, or have whichever
    /// makes longer strings.
    ///
    /// - Parameters:
    ///   - tableLength: The bytes of the palette.
    ///   - least: The fewest bytes so far, which are those of ``bytes``.
    /// - Returns: Whether any of the ways needs fewer bytes.
    private func compress(
        _ area: Rectangle, _ palette: IndexedPalette, bits: Int, tableLength: Int, _ least: inout Int
    ) -> Bool {
        let count = area.width * area.height
        var tolerance: GIFCompressor.Tolerance?
        if let quality, quality < 100 {
            loadDistances(palette)
            tolerance = GIFCompressor.Tolerance(
                distances: distances.base, most: Int32(20 * (100 - quality)), colors: min(palette.colors.count, 1 << bits))
        }
        let before = least
        func run(transparent: UInt8?) {
            other.compress(
                GIFCompressor.Pixels(
                    indices: indices.base, mayBeTransparent: mayBeTransparent.base, count: count, transparent: transparent),
                minimumCodeSize: max(2, bits), tolerance)
            if other.length + tableLength < least {
                least = other.length + tableLength
                swap(&best, &other)
            }
        }
        run(transparent: palette.hasTransparency ? 0 : nil)
        let (values, mask) = (indices.base, mayBeTransparent.base)
        let unchanged = (0..<count).lazy.filter { mask[$0] != 0 }
        guard palette.hasTransparency, unchanged.first != nil else { return least < before }
        if unchanged.allSatisfy({ values[$0] != 0 }) { run(transparent: nil) }
        for place in unchanged { values[place] = 0 }
        run(transparent: 0)
        return least < before
    }

    private func loadDistances(_ palette: IndexedPalette) {
        for (row, one) in palette.colors.enumerated() {
            for (column, other) in palette.colors.enumerated() {
                var sum: Int32 = 0
                for shift in [UInt32(0), 8, 16] {
                    let difference = Int32(one >> shift & 255) - Int32(other >> shift & 255)
                    sum += difference * difference
                }
                // No colour replaces a transparent pixel or is replaced by it.
                let isTransparent = palette.hasTransparency && (row == 0) != (column == 0)
                distances.base[256 * row + column] = isTransparent ? .max : sum
            }
        }
    }

    private func forEachPixel(_ area: Rectangle, _ body: (_ place: Int, _ word: UInt32, _ isChanged: Bool) -> Void) {
        var place = 0
        for y in area.y..<area.maxY {
            for index in y * width + area.x..<y * width + area.maxX {
                body(place, held.base[index], held.base[index] != base.base[index])
                place &+= 1
            }
        }
    }
}

/// The colours of the pixels of a rectangle that differ from the canvas.
private struct ColorCounts {
    /// Whether any pixel of the rectangle is unchanged.
    private(set) var hasUnchanged = false
    /// Whether any pixel of the rectangle is transparent.
    private(set) var hasTransparency = false
    /// The colours, most frequent first; nil if there are more than 256.
    private(set) var sorted: [UInt32]?

    init(_ words: UnsafePointer<UInt32>, over base: UnsafePointer<UInt32>, _ area: Rectangle, stride: Int) {
        var palette = IndexedPalette(hasTransparency: false)
        var counts = [Int](repeating: 0, count: 256)
        var fits = true
        var last: (word: UInt32, index: Int) = (0, 0)
        for y in area.y..<area.maxY {
            for index in y * stride + area.x..<y * stride + area.maxX {
                let word = words[index]
                if word == 0 { hasTransparency = true }
                if word == base[index] {
                    hasUnchanged = true
                    continue
                }
                if !fits { continue }
                if word != last.word {
                    guard palette.add(word), let index = palette.index(of: word) else {
                        fits = false
                        continue
                    }
                    last = (word, Int(index))
                }
                counts[last.index] &+= 1
            }
        }
        guard fits else { return }
        let order = palette.colors.indices.sorted { (counts[$0], $1) > (counts[$1], $0) }
        sorted = order.map { palette.colors[$0] }
    }
}
