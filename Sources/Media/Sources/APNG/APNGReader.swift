internal import CMedia

/// Reads an animated PNG chunk by chunk: ``PNGPicture`` decodes the pixels of each frame as a PNG of its own.
///
/// A PNG without animation is read as one frame. The reader holds the pixels of one frame in memory. Not thread-safe. The bytes
/// must stay valid for the reader's lifetime.
package struct APNGReader: AnimationDecoder, ~Copyable {
    package static let format = SourceFormat.apng

    private var header: PNGHeader
    /// The colour chunks; nil once the first pixels have been read.
    private var colors: PNGColors?
    /// The conversion of decoded pixels to sRGB; nil if they are already sRGB.
    private var conversion: ColorConversion?
    /// The frame and play counts; nil for a still picture.
    private let animation: APNGAnimation?
    private var delays: DelayFractions
    private var chunks: PNGChunks
    /// The sequence number of the next chunk that has one (PNG third edition §11.3.6).
    private var sequence = 0
    /// The type of the chunks with the current frame's pixels; nil once the pixels have been read.
    private var dataType: UInt32?
    /// Whether the first `IDAT` chunk was reached. Later `IDAT` chunks continue the same picture.
    private var hasData = false
    private var framesBegun = 0
    /// Frames whose pixels were decoded or skipped.
    private var wholeFrames = 0
    /// Whether the file ends within the current frame.
    private var isCutOff = false
    /// The pixels of one frame; grows on demand.
    private var words: HeapBuffer<UInt32>

    package private(set) var ending: AnimationEnding?
    package private(set) var dataBytes = 0
    package private(set) var frame = AnimationFrame(rectangle: .empty, delay: 0, disposal: .unspecified)

    static func recognizes(_ bytes: UnsafeRawBufferPointer) -> Bool { bytes.starts(with: PNGChunks.signature) }

    /// Whether `acTL` precedes the pixels, or the file ends before either.
    static func isAnimation(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var chunks = PNGChunks(bytes)
        while let chunk = chunks.next() {
            if chunk.type == PNGChunk.data { return false }
            if APNGAnimation(chunk) != nil { return true }
        }
        return true
    }

    /// Returns the canvas width times the height; 0 if the file has no whole header.
    static func canvasPixels(of bytes: UnsafeRawBufferPointer) -> Int {
        var chunks = PNGChunks(bytes)
        guard let first = chunks.next(), let header = PNGHeader(first) else { return 0 }
        return header.width * header.height
    }

    package init(_ bytes: UnsafeRawBufferPointer, limits: MediaLimits) throws(TranscodeError) {
        guard Self.recognizes(bytes) else { throw .notAnAnimation }
        var chunks = PNGChunks(bytes)
        guard let first = chunks.next() else { throw .incomplete(.apng) }
        guard var header = PNGHeader(first) else { throw .corrupt(.apng, .header) }
        try limits.check(width: header.width, height: header.height)
        let body = chunks.position
        var animation: APNGAnimation?
        var colors = PNGColors()
        while let chunk = chunks.next(), chunk.type != PNGChunk.data {
            colors.keep(chunk)
            switch chunk.type {
            case PNGChunk.palette, PNGChunk.transparency: header.keep(chunk)
            default: animation = animation ?? APNGAnimation(chunk)
            }
        }
        // The time unit depends on the delays of all frames.
        chunks.position = body
        var delays = DelayFractions()
        var frames = 0
        while animation != nil, frames <= limits.frames, let chunk = chunks.next() {
            guard let control = APNGControl(chunk) else { continue }
            delays.add(control.delay.numerator, control.delay.denominator)
            frames += 1
        }
        chunks.position = body
        let words = try HeapBuffer<UInt32>(count: 1)
        self.header = header
        self.colors = colors
        self.animation = animation
        self.delays = delays
        self.chunks = chunks
        self.words = words
    }

    package var timescale: Int { delays.timescale }
    package var hasRoundedDelays: Bool { delays.isRounded }
    package var canvasSize: (width: Int, height: Int) { (header.width, header.height) }

    package var loopCount: Int? {
        switch animation?.plays {
        case nil, 1: nil
        case 0: 0
        case let plays?: min(plays - 1, FactRange.loopCount.upperBound)
        }
    }

    /// Advances to the pixels of the next frame and reads the chunks before them.
    ///
    /// A damaged or misplaced chunk ends the animation. If no whole frame precedes it, the file is corrupt.
    package mutating func next() throws(TranscodeError) -> Bool {
        if dataType != nil { _ = skipPixels() }
        var control: APNGControl?
        while ending == nil {
            if let animation, framesBegun == animation.frames {
                ending = .complete
                break
            }
            let start = chunks.position
            guard let chunk = chunks.next() else {
                ending = .brokenOff
                break
            }
            switch chunk.type {
            case PNGChunk.control where animation != nil:
                // A control chunk without pixels is replaced by the next one, as in Chromium.
                guard chunk.isSound, let read = APNGControl(chunk), read.sequence == sequence, fits(read) else {
                    try end()
                    break
                }
                control = read
                sequence += 1
            case PNGChunk.data where !hasData:
                hasData = true
                // Without a control chunk, the picture is for viewers that do not support animations.
                guard animation == nil || control != nil else { continue }
                begin(control, chunk.type, at: start)
                return true
            case PNGChunk.data where framesBegun > 0:
                // The pixels of the PNG's own picture are in consecutive chunks (§5.6).
                try end()
            case PNGChunk.frameData where animation != nil:
                guard let control else {
                    try end()
                    break
                }
                begin(control, chunk.type, at: start)
                return true
            case PNGChunk.end:
                ending = .complete
            default:
                break
            }
        }
        return false
    }

    /// Ends the animation after its whole frames because the next frame is flawed.
    private mutating func end() throws(TranscodeError) {
        if wholeFrames == 0 { throw .corrupt(.apng, .unreadableFrame) }
        ending = .brokenOff
    }

    /// Whether the frame lies within the canvas, and covers it if its pixels are those of the PNG's own picture.
    private func fits(_ control: APNGControl) -> Bool {
        let rectangle = control.rectangle
        guard rectangle.width > 0, rectangle.height > 0, rectangle.maxX <= header.width, rectangle.maxY <= header.height else {
            return false
        }
        return hasData || rectangle == Rectangle(x: 0, y: 0, width: header.width, height: header.height)
    }

    private mutating func begin(_ control: APNGControl?, _ type: UInt32, at position: Int) {
        let canvas = Rectangle(x: 0, y: 0, width: header.width, height: header.height)
        frame = AnimationFrame(
            rectangle: control?.rectangle ?? canvas,
            delay: control.map { delays.units($0.delay.numerator, $0.delay.denominator) } ?? 0,
            disposal: control?.disposal ?? .keep, blend: control?.blend ?? .replace, hasAlpha: header.hasAlpha,
            pixelsPerByte: header.pixelsPerByte)
        // Before the first frame, there is nothing to restore (§11.3.6.2).
        if framesBegun == 0, frame.disposal == .restore { frame.disposal = .clear }
        framesBegun += 1
        dataType = type
        chunks.position = position
    }

    package mutating func skipPixels() -> Bool {
        while nextPart() != nil {}
        wholeFrames += 1
        return ending == nil
    }

    package mutating func readPixels() throws(TranscodeError) -> FramePixels? {
        if let colors {
            conversion = try colors.conversion(header.words)
            if header.words == .palette, let whole = conversion.take() { header.convertPalette(whole) }
            self.colors = nil
        }
        let (width, height) = (frame.rectangle.width, frame.rectangle.height)
        if words.count < width * height { words = try HeapBuffer(count: header.width * header.height) }
        let head = header.head(width: width, height: height)
        var parts: [UnsafeRawBufferPointer] = []
        while let part = nextPart() { try parts.grow(by: part) }
        // zlib may hold back the last rows of a stream that ends without its Adler-32 until it gets another byte.
        if ending == nil { try parts.grow(by: Self.flush) }
        let isWhole = try PNGPicture.decode(parts, head: head, width: width, height: height, into: words.base)
        guard isWhole else {
            if !isCutOff { try end() }
            ending = .brokenOff
            return nil
        }
        wholeFrames += 1
        conversion?.convert(UnsafeMutableBufferPointer(start: words.base, count: width * height))
        return .colors(UnsafeBufferPointer(start: words.base, count: width * height))
    }

    /// A byte after the compressed pixels, where their Adler-32 would be. It is not verified.
    private static var flush: UnsafeRawBufferPointer {
        let byte: StaticString = "\0"
        return UnsafeRawBufferPointer(start: byte.utf8Start, count: 1)
    }

    /// Returns the next part of the current frame's compressed pixels; nil after the last part, or if the file is broken there.
    private mutating func nextPart() -> UnsafeRawBufferPointer? {
        while let type = dataType {
            let start = chunks.position
            guard let chunk = chunks.next() else {
                isCutOff = true
                ending = .brokenOff
                break
            }
            if chunk.type != type {
                if type == PNGChunk.frameData && chunk.isIgnored { continue }
                chunks.position = start
                break
            }
            // Browsers verify the checksums of `IDAT`, but not those of `fdAT`.
            guard type == PNGChunk.frameData || chunk.isSound, let part = payload(of: chunk) else {
                ending = .brokenOff
                break
            }
            dataBytes += part.count
            return part
        }
        dataType = nil
        return nil
    }

    /// Returns a chunk's data without the sequence number; nil unless that number is the expected one.
    private mutating func payload(of chunk: PNGChunk) -> UnsafeRawBufferPointer? {
        if chunk.type == PNGChunk.data { return chunk.data }
        guard chunk.data.count >= 4, chunk.number(at: 0) == sequence else { return nil }
        sequence += 1
        return UnsafeRawBufferPointer(rebasing: chunk.data[4...])
    }
}

extension PNGChunk {
    /// Whether the chunk does not affect the animation: it is ancillary (§5.4) and has no sequence number.
    fileprivate var isIgnored: Bool {
        type & 0x2000_0000 != 0 && type != Self.control && type != Self.frameData
    }
}
