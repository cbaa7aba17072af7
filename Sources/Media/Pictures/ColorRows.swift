/// Draws rows of colours with alpha on a canvas' pixels.
///
/// Works on groups of eight pixels: most are wholly opaque or wholly transparent, and few of them change from frame to frame.
struct ColorRows {
    let format: PixelFormat
    let blend: AnimationFrame.Blend

    private static let group = 8
    /// The alpha of two pixels.
    private static let opaque: UInt64 = 0xff00_0000_ff00_0000

    /// Draws one row.
    ///
    /// - Parameters:
    ///   - source: R, G, B, A from the lowest byte to the highest, straight alpha.
    ///   - target: Pixels of the canvas.
    /// - Returns: A range of pixels that contains all changes; nil without a change.
    func draw(
        _ source: UnsafePointer<UInt32>, count: Int, onto target: UnsafeMutablePointer<UInt32>
    ) -> ClosedRange<Int>? {
        var first = Int.max
        var last = -1
        var index = 0
        while index < count {
            let isGroup = index &+ Self.group <= count
            let hasChanged =
                isGroup ? drawGroup(source + index, target + index) : drawPixel(source[index], target + index)
            let end = index &+ (isGroup ? Self.group : 1)
            if hasChanged {
                first = min(first, index)
                last = end &- 1
            }
            index = end
        }
        return last < 0 ? nil : first...last
    }

    @inline(__always)
    private func drawGroup(_ source: UnsafePointer<UInt32>, _ target: UnsafeMutablePointer<UInt32>) -> Bool {
        let place = UnsafeRawPointer(source)
        let pairs = (
            place.loadUnaligned(as: UInt64.self), place.loadUnaligned(fromByteOffset: 8, as: UInt64.self),
            place.loadUnaligned(fromByteOffset: 16, as: UInt64.self), place.loadUnaligned(fromByteOffset: 24, as: UInt64.self)
        )
        if pairs.0 & pairs.1 & pairs.2 & pairs.3 & Self.opaque == Self.opaque { return drawOpaque(place, target) }
        if blend != .replace && (pairs.0 | pairs.1 | pairs.2 | pairs.3) & Self.opaque == 0 { return false }
        var hasChanged = false
        for number in 0..<Self.group where drawPixel(source[number], target + number) { hasChanged = true }
        return hasChanged
    }

    @inline(__always)
    private func drawOpaque(_ source: UnsafeRawPointer, _ target: UnsafeMutablePointer<UInt32>) -> Bool {
        let words = source.loadUnaligned(as: SIMD8<UInt32>.self)
        let new =
            switch format {
            case .rgba: words
            case .yuv: PixelFormat.yuv(words)
            }
        let place = UnsafeMutableRawPointer(target)
        if new == place.loadUnaligned(as: SIMD8<UInt32>.self) { return false }
        place.storeBytes(of: new, as: SIMD8<UInt32>.self)
        return true
    }

    @inline(__always)
    private func drawPixel(_ word: UInt32, _ target: UnsafeMutablePointer<UInt32>) -> Bool {
        let new = format.draw(word, blend, over: target.pointee)
        if new == target.pointee { return false }
        target.pointee = new
        return true
    }
}
