/// The canvas on which the frames of an animation are composed (GIF89a §18, §23).
///
/// Frames are clipped to the canvas. Not thread-safe.
package struct Canvas: ~Copyable {
    package let width: Int
    package let height: Int
    let format: PixelFormat
    private let storage: HeapBuffer<UInt32>
    private var colors: ColorTable
    /// The pixels under the last frame if its disposal restores them, in a buffer of the canvas' size; allocated on first use.
    private var saved: HeapBuffer<UInt32>?
    private var lastDisposal = AnimationFrame.Disposal.unspecified
    private var lastRectangle = Rectangle.empty

    /// Creates an empty canvas.
    ///
    /// - Throws: ``TranscodeError/outOfMemory``.
    package init(width: Int, height: Int, format: PixelFormat) throws(TranscodeError) {
        let storage = try HeapBuffer<UInt32>(repeating: format.clear, count: width * height)
        let colors = try ColorTable()
        self.width = width
        self.height = height
        self.format = format
        self.storage = storage
        self.colors = colors
    }

    /// Rows from top to bottom without padding; see ``PixelFormat``.
    var pixels: UnsafeMutablePointer<UInt32> { storage.base }

    /// Calls `body` with the canvas as bytes, rows from top to bottom without padding.
    package func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        body(UnsafeRawBufferPointer(start: pixels, count: width * height * 4))
    }

    /// Copies a part of a canvas of the same size and format.
    ///
    /// - Parameter area: A rectangle inside the canvas.
    func copy(_ other: borrowing Canvas, _ area: Rectangle) {
        forEachRow(of: area) { (pixels + $0).update(from: other.pixels + $0, count: $1) }
    }

    /// Whether a pixel in the rectangle is not opaque, on a canvas in the format ``PixelFormat/rgba``.
    ///
    /// - Parameter rectangle: A rectangle inside the canvas; nil for the whole canvas.
    func hasTransparency(in rectangle: Rectangle?) -> Bool {
        let area = rectangle ?? Rectangle(x: 0, y: 0, width: width, height: height)
        for y in area.y..<area.maxY {
            let row = pixels + (y * width + area.x)
            for x in 0..<area.width where row[x] < PixelFormat.opaque { return true }
        }
        return false
    }

    /// Disposes of the previous frame and draws the decoder's frame.
    ///
    /// - Parameters:
    ///   - decoder: A decoder that has read the header of the frame; supplies its palette.
    ///   - pixels: The frame's pixels. Indices missing at the end leave the canvas unchanged.
    /// - Returns: A rectangle that contains all changes; empty if nothing can have changed.
    /// - Throws: ``TranscodeError/outOfMemory``, at the first frame whose disposal restores the canvas.
    package mutating func draw<Decoder: AnimationDecoder & ~Copyable>(
        _ decoder: borrowing Decoder, _ pixels: FramePixels
    ) throws(TranscodeError) -> Rectangle {
        let frame = decoder.frame
        let disposed = dispose()
        let visible = frame.rectangle.clipped(toWidth: width, height: height)
        if frame.disposal == .restore { try save(visible) }
        lastDisposal = frame.disposal
        lastRectangle = visible
        switch pixels {
        case .indices(let indices):
            colors.load(from: decoder, format: format)
            return disposed.union(drawIndices(indices, frame))
        case .colors(let words):
            return disposed.union(drawColors(words, frame, visible))
        case .planes:
            return disposed
        }
    }

    private func drawIndices(_ indices: UnsafeBufferPointer<UInt8>, _ frame: AnimationFrame) -> Rectangle {
        guard frame.rectangle.width > 0 else { return .empty }
        var changed = Rectangle.empty
        var rows = InterlacedRows(count: frame.rectangle.height, isInterlaced: frame.isInterlaced)
        var offset = 0
        while offset < indices.count, let row = rows.next() {
            let count = min(frame.rectangle.width, indices.count - offset)
            let y = frame.rectangle.y + row
            if y < height && frame.rectangle.x < width {
                let line = UnsafeBufferPointer(rebasing: indices[offset..<offset + min(count, width - frame.rectangle.x)])
                let span = drawRow(line, x: frame.rectangle.x, y: y, transparent: frame.transparentIndex)
                changed = changed.union(span)
            }
            offset += count
        }
        return changed
    }

    /// Draws pixels that are colours with alpha. Returns a rectangle that contains all changes.
    private func drawColors(
        _ words: UnsafeBufferPointer<UInt32>, _ frame: AnimationFrame, _ visible: Rectangle
    ) -> Rectangle {
        guard words.count >= frame.rectangle.width * frame.rectangle.height else { return .empty }
        guard let base = words.baseAddress else { return .empty }
        let rows = ColorRows(format: format, blend: frame.blend)
        var changed = Rectangle.empty
        for y in visible.y..<visible.maxY {
            let source = base + ((y - frame.rectangle.y) * frame.rectangle.width + visible.x - frame.rectangle.x)
            guard let span = rows.draw(source, count: visible.width, onto: pixels + (y * width + visible.x)) else { continue }
            changed = changed.union(Rectangle(x: visible.x + span.lowerBound, y: y, width: span.count, height: 1))
        }
        return changed
    }

    /// Draws one row. Returns a part of the row that contains all changes.
    ///
    /// A group of eight pixels is written only if one of them changes: most rows of most GIFs do not change.
    private func drawRow(_ line: UnsafeBufferPointer<UInt8>, x: Int, y: Int, transparent: UInt8?) -> Rectangle {
        guard let codes = UnsafeRawPointer(line.baseAddress) else { return .empty }
        let target = pixels + (y * width + x)
        var first = Int.max
        var last = -1
        var index = 0
        while index < line.count {
            let isGroup = index &+ 8 <= line.count
            let hasChanged =
                isGroup
                ? drawGroup(
                    UInt64(littleEndian: codes.loadUnaligned(fromByteOffset: index, as: UInt64.self)), transparent,
                    at: target + index)
                : drawPixel(line[index], transparent, at: target + index)
            let end = index &+ (isGroup ? 8 : 1)
            if hasChanged {
                first = min(first, index)
                last = end &- 1
            }
            index = end
        }
        return last < 0 ? .empty : Rectangle(x: x + first, y: y, width: last - first + 1, height: 1)
    }

    /// Draws eight pixels, which may be transparent, from the lowest byte of `codes` on. Returns whether any pixel changed.
    @inline(__always)
    private func drawGroup(_ codes: UInt64, _ transparent: UInt8?, at target: UnsafeMutablePointer<UInt32>) -> Bool {
        guard let transparent else { return drawEight(codes, at: target) }
        let everywhere: UInt64 = 0x0101_0101_0101_0101
        let difference = codes ^ (everywhere &* UInt64(transparent))
        if difference == 0 { return false }
        // If no byte of the difference is zero, none of the eight is transparent.
        if (difference &- everywhere) & ~difference & (everywhere &<< 7) == 0 { return drawEight(codes, at: target) }
        var hasChanged = false
        for number in 0..<8 {
            let code = UInt8(truncatingIfNeeded: codes &>> UInt64(8 &* number))
            if drawPixel(code, transparent, at: target + number) { hasChanged = true }
        }
        return hasChanged
    }

    /// Draws eight opaque pixels.
    @inline(__always)
    private func drawEight(_ codes: UInt64, at target: UnsafeMutablePointer<UInt32>) -> Bool {
        let entries = colors.entries
        func pair(_ number: UInt64) -> UInt64 {
            let codes = codes &>> (number &* 16)
            let (even, odd) = (entries[Int(codes & 0xff)], entries[Int(codes &>> 8 & 0xff)])
            return (UInt64(even) | UInt64(odd) &<< 32).littleEndian
        }
        let new = (pair(0), pair(1), pair(2), pair(3))
        let place = UnsafeMutableRawPointer(target)
        let old = (
            place.loadUnaligned(as: UInt64.self), place.loadUnaligned(fromByteOffset: 8, as: UInt64.self),
            place.loadUnaligned(fromByteOffset: 16, as: UInt64.self), place.loadUnaligned(fromByteOffset: 24, as: UInt64.self)
        )
        if (new.0 ^ old.0) | (new.1 ^ old.1) | (new.2 ^ old.2) | (new.3 ^ old.3) == 0 { return false }
        place.storeBytes(of: new.0, as: UInt64.self)
        place.storeBytes(of: new.1, toByteOffset: 8, as: UInt64.self)
        place.storeBytes(of: new.2, toByteOffset: 16, as: UInt64.self)
        place.storeBytes(of: new.3, toByteOffset: 24, as: UInt64.self)
        return true
    }

    @inline(__always)
    private func drawPixel(_ code: UInt8, _ transparent: UInt8?, at target: UnsafeMutablePointer<UInt32>) -> Bool {
        if code == transparent { return false }
        let color = colors.entries[Int(code)]
        if target.pointee == color { return false }
        target.pointee = color
        return true
    }

    /// Disposes of the last frame. Returns the changed rectangle.
    private mutating func dispose() -> Rectangle {
        switch lastDisposal {
        case .unspecified, .keep:
            return .empty
        case .clear:
            forEachRow(of: lastRectangle) { (pixels + $0).update(repeating: format.clear, count: $1) }
        case .restore:
            guard let saved = saved?.base else { return .empty }
            forEachRow(of: lastRectangle) { (pixels + $0).update(from: saved + $0, count: $1) }
        }
        return lastRectangle
    }

    private mutating func save(_ rectangle: Rectangle) throws(TranscodeError) {
        if saved == nil { saved = try HeapBuffer(count: width * height) }
        guard let target = saved?.base else { return }
        forEachRow(of: rectangle) { (target + $0).update(from: pixels + $0, count: $1) }
    }

    /// Calls `body` with the offset and the length of each row of the rectangle.
    private func forEachRow(of rectangle: Rectangle, _ body: (_ offset: Int, _ count: Int) -> Void) {
        for y in rectangle.y..<rectangle.maxY {
            body(y * width + rectangle.x, rectangle.width)
        }
    }
}

/// A palette as canvas pixels. It has 256 entries, one for every possible index.
struct ColorTable: ~Copyable {
    private let storage: HeapBuffer<UInt32>
    /// Whether the entries are the global palette's, which need not be converted again.
    private var holdsGlobal = false

    init() throws(TranscodeError) {
        storage = try HeapBuffer(repeating: 0, count: 256)
    }

    var entries: UnsafeMutablePointer<UInt32> { storage.base }

    /// Converts the palette of the decoder's frame.
    mutating func load<Decoder: AnimationDecoder & ~Copyable>(from decoder: borrowing Decoder, format: PixelFormat) {
        let isGlobal = !decoder.frame.hasLocalPalette
        if isGlobal && holdsGlobal { return }
        let entries = entries
        entries.update(repeating: format.pack(GIFQuirks.missingColor), count: 256)
        decoder.forEachPaletteColor { index, color in entries[index] = format.pack(color) }
        holdsGlobal = isGlobal
    }
}

/// The rows of an image in coded order: four passes if it is interlaced (GIF89a Appendix E).
struct InterlacedRows: IteratorProtocol {
    private static let passes: [(start: Int, step: Int)] = [(0, 8), (4, 8), (2, 4), (1, 2)]
    private let count: Int
    private var row = 0
    private var step = 1
    /// The index of the next pass.
    private var pass = 4

    init(count: Int, isInterlaced: Bool) {
        self.count = count
        if isInterlaced {
            step = Self.passes[0].step
            pass = 1
        }
    }

    mutating func next() -> Int? {
        while row >= count {
            guard pass < Self.passes.count else { return nil }
            row = Self.passes[pass].start
            step = Self.passes[pass].step
            pass += 1
        }
        defer { row += step }
        return row
    }
}
