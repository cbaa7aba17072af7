internal import CMedia

/// Reads a GIF record by record: giflib parses the container, ``LZWDecoder`` the pixels.
///
/// The reader holds the indices of one frame in memory. Not thread-safe. The bytes must stay valid for its lifetime.
package struct GIFReader: AnimationDecoder, ~Copyable {
    private let source: GIFSource
    private let limits: MediaLimits
    private var decoder: LZWDecoder
    /// The indices of one frame and the decoder's slack; grows on demand.
    private var indices: HeapBuffer<UInt8>

    /// The control block of the next image (GIF89a §23).
    private var control = Control()
    /// The LZW minimum code size of the image whose data follows; nil if no data follows.
    private var codeSize: Int?

    /// Size of the logical screen as coded; a side may be 0.
    private let screenWidth: Int
    private let screenHeight: Int
    /// The raw loop count of the latest looping extension; nil if none has been read, 0 for endless.
    package private(set) var loopCount: Int?
    /// How the records ended; nil before the end.
    package private(set) var ending: AnimationEnding?
    /// Bytes of image data that were skipped or decoded so far.
    package private(set) var dataBytes = 0
    /// The current frame, whose data follows or was read last.
    package private(set) var frame = AnimationFrame(rectangle: .empty, delay: 0, disposal: .unspecified)

    private var firstFrame = Rectangle.empty
    /// Image descriptors read so far.
    private var images = 0

    private struct Control: Equatable {
        var delay = 0
        var disposal = AnimationFrame.Disposal.unspecified
        var transparentIndex: UInt8?
    }

    package static let format = SourceFormat.gif
    package let timescale = FrameClock.timescale

    /// Whether a file begins with `GIF` and the version `87a` or `89a` (GIF89a §17).
    static func recognizes(_ bytes: UnsafeRawBufferPointer) -> Bool {
        bytes.starts(with: "GIF87a".utf8) || bytes.starts(with: "GIF89a".utf8)
    }

    /// Returns width times height of the logical screen (GIF89a §18); 0 for too few bytes. The bytes need not be a GIF.
    static func screenPixels(of bytes: UnsafeRawBufferPointer) -> Int {
        guard bytes.count >= 10 else { return 0 }
        func word(_ at: Int) -> Int { Int(bytes[at]) | Int(bytes[at + 1]) << 8 }
        return word(6) * word(8)
    }

    /// Opens the GIF and checks its canvas.
    ///
    /// - Throws: ``TranscodeError/notAnAnimation``, `incomplete`, `corrupt`, `outOfMemory`, or `tooLarge` for the canvas.
    package init(_ bytes: UnsafeRawBufferPointer, limits: MediaLimits) throws(TranscodeError) {
        let source = try GIFSource(bytes)
        let width = Int(source.handle.pointee.SWidth)
        let height = Int(source.handle.pointee.SHeight)
        try limits.check(width: width, height: height)
        let decoder = try LZWDecoder()
        let indices = try HeapBuffer<UInt8>(count: LZWDecoder.slack)
        screenWidth = width
        screenHeight = height
        self.source = source
        self.limits = limits
        self.decoder = decoder
        self.indices = indices
    }

    /// Advances to the next image descriptor and reads it, its palette and the control block before it.
    ///
    /// - Returns: Whether there is a next image. If false, ``ending`` holds the reason.
    /// - Throws: ``TranscodeError/tooLarge(_:value:maximum:)`` for a frame over the limits, or `outOfMemory`.
    package mutating func next() throws(TranscodeError) -> Bool {
        if codeSize != nil { _ = skipPixels() }
        while ending == nil {
            var record = UNDEFINED_RECORD_TYPE
            guard DGifGetRecordType(source.handle, &record) == GIF_OK else {
                ending = isBetweenFrames ? .unmarked : .brokenOff
                break
            }
            switch record {
            case IMAGE_DESC_RECORD_TYPE:
                if try readDescriptor() { return true }
            case EXTENSION_RECORD_TYPE:
                if !readExtension() { ending = .brokenOff }
            case TERMINATE_RECORD_TYPE:
                ending = .complete
            default:
                ending = isBetweenFrames ? .unmarked : .brokenOff
            }
        }
        return false
    }

    /// Whether a whole frame has been read, with no control block after it. In front of the first frame, whether the file goes
    /// on, with bytes that are no record.
    private var isBetweenFrames: Bool { images > 0 ? control == Control() : !source.isAtEnd }

    private mutating func readDescriptor() throws(TranscodeError) -> Bool {
        let status = gifreel_gif_image_header(source.handle)
        if status != GIF_OK && source.isOutOfMemory { throw .outOfMemory }
        // The code size is the last byte of the header. giflib rejects sizes above 8 after reading that byte. The data after it
        // can still be read block by block.
        guard let size = source.lastByte, status == GIF_OK || size > 8, !source.isAtEnd else {
            ending = .brokenOff
            return false
        }
        let image = source.handle.pointee.Image
        frame = AnimationFrame(
            rectangle: Rectangle(x: Int(image.Left), y: Int(image.Top), width: Int(image.Width), height: Int(image.Height)),
            isInterlaced: image.Interlace,
            delay: control.delay,
            disposal: control.disposal,
            transparentIndex: control.transparentIndex,
            hasLocalPalette: image.ColorMap != nil)
        control = Control()
        if images == 0 { firstFrame = frame.rectangle }
        images += 1
        try limits.check(.canvasPixels, frame.rectangle.width * frame.rectangle.height)
        codeSize = Int(size)
        return true
    }

    private mutating func readExtension() -> Bool {
        var label: Int32 = 0
        var block: UnsafeMutablePointer<GifByteType>?
        guard DGifGetExtension(source.handle, &label, &block) == GIF_OK else { return false }
        var isLooping = false
        var isFirst = true
        while let current = block {
            let data = UnsafeBufferPointer(start: current + 1, count: Int(current[0]))
            switch label {
            case GRAPHICS_EXT_FUNC_CODE where isFirst && data.count >= 4:
                control.disposal = GIFQuirks.disposal(data[0] >> 2 & 7)
                control.delay = Int(data[1]) | Int(data[2]) << 8
                control.transparentIndex = data[0] & 1 == 1 ? data[3] : nil
            case APPLICATION_EXT_FUNC_CODE where isFirst:
                isLooping = GIFQuirks.loopingApplications.contains { data.elementsEqual($0) }
            case APPLICATION_EXT_FUNC_CODE where isLooping && data.count >= 3 && data[0] & 7 == 1:
                loopCount = Int(data[1]) | Int(data[2]) << 8
            default:
                // Plain text is a graphic and consumes the control block (GIF89a §25). Browsers do not draw it, and apply the
                // control block to the next image.
                break
            }
            isFirst = false
            guard DGifGetExtensionNext(source.handle, &block) == GIF_OK else { return false }
        }
        return true
    }

    /// Skips the frame's data. Returns whether it was complete.
    package mutating func skipPixels() -> Bool {
        forEachBlock { _, _ in }
    }

    /// Decodes the frame's data.
    ///
    /// - Returns: The frame's palette indices, row by row in coded order (even if interlaced), valid until the next call; fewer
    ///   than the frame's pixels if its data ends early. Nil if the file ends inside the frame, unless it is the first frame
    ///   and has pixels: browsers show the part that arrived.
    /// - Throws: ``TranscodeError/outOfMemory``.
    package mutating func readPixels() throws(TranscodeError) -> FramePixels? {
        let pixels = frame.rectangle.width * frame.rectangle.height
        if indices.count < pixels + LZWDecoder.slack {
            // Few frames are larger than the screen, so this usually happens once.
            indices = try HeapBuffer(count: max(pixels, screenWidth * screenHeight) + LZWDecoder.slack)
        }
        let output = indices.base
        var decoded = 0
        if let codeSize { decoder.begin(minimumCodeSize: codeSize, output: output, pixels: pixels) }
        let isWhole = forEachBlock { decoder, block in
            decoder.decode(block)
            decoded = decoder.count
        }
        if !isWhole && decoded < pixels && (images > 1 || decoded == 0) { return nil }
        return .indices(UnsafeBufferPointer(start: output, count: decoded))
    }

    /// Calls `body` with the frame's data sub-blocks. Returns whether their terminator was reached.
    private mutating func forEachBlock(_ body: (inout LZWDecoder, UnsafeBufferPointer<UInt8>) -> Void) -> Bool {
        guard codeSize != nil else { return false }
        codeSize = nil
        var block: UnsafeMutablePointer<GifByteType>?
        var status = DGifGetCodeNext(source.handle, &block)
        while status == GIF_OK {
            guard let current = block else { return true }
            dataBytes += Int(current[0])
            body(&decoder, UnsafeBufferPointer(start: current + 1, count: Int(current[0])))
            status = DGifGetCodeNext(source.handle, &block)
        }
        ending = .brokenOff
        body(&decoder, source.lastRead.bindMemory(to: UInt8.self))
        return false
    }

    /// The size of the logical screen, enlarged to a first frame that extends past it, as in Chromium. GIF89a §20 forbids such
    /// frames. Later frames are clipped.
    package var canvasSize: (width: Int, height: Int) {
        (max(screenWidth, firstFrame.maxX), max(screenHeight, firstFrame.maxY))
    }

    /// Calls `body` for each entry of the frame's own palette, or of the global palette if the frame has none.
    package func forEachPaletteColor(_ body: (_ index: Int, _ color: RGB) -> Void) {
        guard let map = source.handle.pointee.Image.ColorMap ?? source.handle.pointee.SColorMap,
            let colors = map.pointee.Colors
        else { return }
        for index in 0..<min(256, Int(map.pointee.ColorCount)) {
            let color = colors[index]
            body(index, RGB(red: color.Red, green: color.Green, blue: color.Blue))
        }
    }
}
