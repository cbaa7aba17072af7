/// The logical screen on which a GIF's images are laid one over the other (GIF89a §18, §23).
///
/// Every image is clipped to the canvas. Not thread-safe.
package struct Canvas: ~Copyable {
    package let width: Int
    package let height: Int
    let format: PixelFormat
    private let storage: HeapBuffer<UInt32>
    private var colors: ColorTable
    /// What was under the last image, where it is to be restored; canvas-sized, made on first need.
    private var saved: HeapBuffer<UInt32>?
    private var lastDisposal = GIFFrame.Disposal.unspecified
    private var lastRectangle = Rectangle.empty

    /// A canvas without any image on it.
    ///
    /// - Throws: ``TranscodeError/outOfMemory``.
    package init(width: Int, height: Int, format: PixelFormat) throws(TranscodeError) {
        let storage = try HeapBuffer<UInt32>(count: width * height)
        let colors = try ColorTable()
        storage.base.initialize(repeating: format.clear, count: width * height)
        self.width = width
        self.height = height
        self.format = format
        self.storage = storage
        self.colors = colors
    }

    /// Rows from top to bottom without padding; see ``PixelFormat``.
    var pixels: UnsafeMutablePointer<UInt32> { storage.base }

    /// The canvas as bytes, rows from top to bottom without padding.
    package func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        body(UnsafeRawBufferPointer(start: pixels, count: width * height * 4))
    }

    /// Disposes of the image before and lays the reader's frame on the canvas.
    ///
    /// - Parameters:
    ///   - reader: Stands at the frame; gives its palette.
    ///   - indices: The frame's pixels as ``GIFReader/readPixels()`` gives them. Pixels that are missing at the end
    ///     leave the canvas as it is.
    /// - Returns: A rectangle outside of which the canvas is as it was before; empty when nothing can have changed.
    /// - Throws: ``TranscodeError/outOfMemory``, at the first frame that is to be undone.
    package mutating func draw(
        _ reader: borrowing GIFReader, indices: UnsafeBufferPointer<UInt8>
    ) throws(TranscodeError) -> Rectangle {
        let frame = reader.frame
        let disposed = dispose()
        let visible = frame.rectangle.clipped(toWidth: width, height: height)
        if frame.disposal == .restore { try save(visible) }
        lastDisposal = frame.disposal
        lastRectangle = visible
        colors.load(from: reader, format: format)

        var changed = Rectangle.empty
        if frame.rectangle.width > 0 {
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
        }
        return disposed.union(changed)
    }

    /// Draws one row, and returns a part of it outside of which it is as it was.
    ///
    /// Pixels go eight by eight, and are written only where one of the eight changes: most rows of most GIFs stay as they are.
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

    /// Draws eight pixels, of which some may be transparent; the first is the code's lowest byte. Returns whether one was
    /// another before.
    @inline(__always)
    private func drawGroup(_ codes: UInt64, _ transparent: UInt8?, at target: UnsafeMutablePointer<UInt32>) -> Bool {
        guard let transparent else { return drawEight(codes, at: target) }
        let everywhere: UInt64 = 0x0101_0101_0101_0101
        let difference = codes ^ (everywhere &* UInt64(transparent))
        if difference == 0 { return false }
        // Where no byte of the difference is zero, none of the eight is transparent.
        if (difference &- everywhere) & ~difference & (everywhere &<< 7) == 0 { return drawEight(codes, at: target) }
        var hasChanged = false
        for number in 0..<8 {
            let code = UInt8(truncatingIfNeeded: codes &>> UInt64(8 &* number))
            if drawPixel(code, transparent, at: target + number) { hasChanged = true }
        }
        return hasChanged
    }

    /// Draws eight pixels none of which is transparent.
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

    /// Does with the last image's rectangle what its disposal says, and returns the rectangle where that changed it.
    private mutating func dispose() -> Rectangle {
        switch lastDisposal {
        case .unspecified, .keep:
            return .empty
        case .clear:
            for y in lastRectangle.y..<lastRectangle.maxY {
                (pixels + (y * width + lastRectangle.x)).update(repeating: format.clear, count: lastRectangle.width)
            }
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
