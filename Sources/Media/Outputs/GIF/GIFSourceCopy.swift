/// Copies a GIF source with unchanged image data. Comments and other extensions are omitted, and the rest has the form that
/// ``GIFWriter`` writes.
///
/// The copy is smaller if a program has optimized the source's pixels for its own compression, and exact if a frame restores
/// more colours than a palette has.
enum GIFSourceCopy {
    /// Returns the file; nil if the source is not a GIF, has damaged blocks, is interlaced, or has frames that leave the screen
    /// or lack a palette.
    static func file(_ bytes: UnsafeRawBufferPointer, _ summary: AnimationSummary, plays: Int?) -> [UInt8]? {
        guard summary.ending == .complete, var source = Reader(bytes, summary) else { return nil }
        var file = source.header
        if summary.delays.count > 1 { file += GIFWriter.repetition(plays: plays) }
        for delay in summary.delays {
            guard let image = source.nextImage() else { return nil }
            let isStill = summary.delays.count == 1
            if !isStill || image.transparent != nil {
                let time = isStill ? 0 : summary.shownDelay(delay)
                guard time <= GIFWriter.longest else { return nil }
                file += GIFWriter.control(image.disposal, transparent: image.transparent, delay: time)
            }
            file += bytes[image.range]
        }
        return source.nextImage() == nil && source.isAtEnd ? file + [0x3b] : nil
    }

    /// Whether every frame has data for all of its pixels. Browsers end an animation at a frame that lacks pixels.
    static func isWhole(_ bytes: UnsafeRawBufferPointer, limits: MediaLimits) throws(TranscodeError) -> Bool {
        var reader = try GIFReader(bytes, limits: limits)
        while try reader.next() {
            let pixels = try reader.readPixels()?.count
            if pixels != reader.frame.rectangle.width * reader.frame.rectangle.height { return false }
        }
        return true
    }

    private struct Image {
        /// The range of the descriptor, the palette and the data.
        var range: Range<Int>
        var disposal = AnimationFrame.Disposal.keep
        var transparent: UInt8?
    }

    /// Reads the blocks of a GIF (GIF89a appendix B).
    private struct Reader {
        /// The header, the screen and the global palette, which has two colours if the source has none.
        let header: [UInt8]
        /// Whether the trailer was read.
        private(set) var isAtEnd = false

        private let bytes: UnsafeRawBufferPointer
        private let hasPalette: Bool
        private let width: Int
        private let height: Int
        private var position: Int

        init?(_ bytes: UnsafeRawBufferPointer, _ summary: AnimationSummary) {
            guard bytes.count >= 13, bytes.starts(with: "GIF8".utf8) else { return nil }
            self.bytes = bytes
            (width, height) = (summary.width, summary.height)
            hasPalette = bytes[10] & 0x80 != 0
            let bits = bytes[10] & 7
            let length = hasPalette ? 3 << (Int(bits) + 1) : 0
            position = 13 + length
            guard position <= bytes.count else { return nil }
            let palette = hasPalette ? Array(bytes[13..<position]) : [UInt8](repeating: 0, count: 6)
            header = Array("GIF89a".utf8) + bytes[6..<10] + [0xf0 | (hasPalette ? bits : 0), 0, 0] + palette
            // A first frame may enlarge the screen.
            guard number(6) == width, number(8) == height else { return nil }
        }

        /// Reads the next image; nil at the end or if the blocks are malformed.
        mutating func nextImage() -> Image? {
            var image = Image(range: 0..<0)
            while let kind = take(1)?.first {
                switch kind {
                case 0x21:
                    guard let label = take(1)?.first else { return nil }
                    let start = position
                    guard skipBlocks() else { return nil }
                    if label == 0xf9 {
                        guard bytes[start] == 4 else { return nil }
                        let disposal = GIFQuirks.disposal(bytes[start + 1] >> 2 & 7)
                        image.disposal = disposal == .unspecified ? .keep : disposal
                        image.transparent = bytes[start + 1] & 1 == 1 ? bytes[start + 4] : nil
                    }
                case 0x2c:
                    return readImage(&image) ? image : nil
                case 0x3b:
                    isAtEnd = true
                    return nil
                default:
                    return nil
                }
            }
            return nil
        }

        private mutating func readImage(_ image: inout Image) -> Bool {
            let start = position - 1
            guard take(9) != nil else { return false }
            let (x, y, columns, rows) = (number(start + 1), number(start + 3), number(start + 5), number(start + 7))
            let fields = bytes[start + 9]
            let hasOwnPalette = fields & 0x80 != 0
            guard columns > 0, rows > 0, x + columns <= width, y + rows <= height, fields & 0x78 == 0,
                hasOwnPalette || hasPalette,
                hasOwnPalette || fields == 0, !hasOwnPalette || take(3 << (Int(fields & 7) + 1)) != nil,
                let size = take(1)?.first, (2...8).contains(size), skipBlocks()
            else { return false }
            image.range = start..<position
            return true
        }

        /// Skips sub-blocks and their terminator.
        private mutating func skipBlocks() -> Bool {
            while let length = take(1)?.first {
                if length == 0 { return true }
                if take(Int(length)) == nil { return false }
            }
            return false
        }

        private mutating func take(_ count: Int) -> Slice<UnsafeRawBufferPointer>? {
            guard position + count <= bytes.count else { return nil }
            defer { position += count }
            return bytes[position..<position + count]
        }

        private func number(_ at: Int) -> Int { Int(bytes[at]) | Int(bytes[at + 1]) << 8 }
    }
}
