internal import CMedia

/// Reads an animated WebP frame by frame: libwebpdemux parses the container, libwebp decodes the pixels.
///
/// A WebP without animation is read as one frame. The background colour is ignored, as in browsers. The reader holds the pixels
/// of one frame in memory. Not thread-safe. The bytes must stay valid for the reader's lifetime.
package struct WebPReader: AnimationDecoder, ~Copyable {
    package static let format = SourceFormat.webp

    private let demuxer: Demuxer
    /// The conversion to sRGB, set when the first pixels are read; nil if the colours are sRGB.
    private var conversion: ColorConversion?
    private var hasRead = false
    /// The number of the current frame, from 1.
    private var number = 0
    /// The compressed pixels of the current frame; nil once they have been read.
    private var data: UnsafeRawBufferPointer?
    /// The pixels of one frame; grows on demand.
    private var words: HeapBuffer<UInt32>

    package let canvasSize: (width: Int, height: Int)
    package let loopCount: Int?
    /// Delays are milliseconds.
    package let timescale = 1000
    package private(set) var ending: AnimationEnding?
    package private(set) var dataBytes = 0
    package private(set) var frame = AnimationFrame(rectangle: .empty, delay: 0, disposal: .unspecified)

    /// Whether a file is a RIFF file of the form `WEBP`.
    static func recognizes(_ bytes: UnsafeRawBufferPointer) -> Bool {
        bytes.count >= 12 && bytes.starts(with: "RIFF".utf8) && bytes[8..<12].elementsEqual("WEBP".utf8)
    }

    /// Whether the header declares an animation, or the file ends before the header states it.
    static func isAnimation(_ bytes: UnsafeRawBufferPointer) -> Bool {
        if bytes.count < 16 { return true }
        guard isExtended(bytes) else { return false }
        return bytes.count < 21 || bytes[20] & 2 != 0
    }

    /// Returns the canvas width times the height; 0 for a file without extended header.
    static func canvasPixels(of bytes: UnsafeRawBufferPointer) -> Int {
        guard bytes.count >= 30, isExtended(bytes) else { return 0 }
        func side(_ at: Int) -> Int { 1 + (Int(bytes[at]) | Int(bytes[at + 1]) << 8 | Int(bytes[at + 2]) << 16) }
        return side(24) * side(27)
    }

    private static func isExtended(_ bytes: UnsafeRawBufferPointer) -> Bool {
        bytes.count >= 16 && recognizes(bytes) && bytes[12..<16].elementsEqual("VP8X".utf8)
    }

    package init(_ bytes: UnsafeRawBufferPointer, limits: MediaLimits) throws(TranscodeError) {
        guard Self.recognizes(bytes) else { throw .notAnAnimation }
        let demuxer = try Demuxer(bytes)
        let (width, height) = (demuxer[WEBP_FF_CANVAS_WIDTH], demuxer[WEBP_FF_CANVAS_HEIGHT])
        try limits.check(width: width, height: height)
        let plays = demuxer[WEBP_FF_LOOP_COUNT]
        let words = try HeapBuffer<UInt32>(count: 1)
        canvasSize = (width, height)
        loopCount = plays == 1 || !Self.isAnimation(bytes) ? nil : max(0, plays - 1)
        self.words = words
        self.demuxer = demuxer
    }

    package mutating func next() throws(TranscodeError) -> Bool {
        if data != nil { _ = skipPixels() }
        if ending != nil { return false }
        guard number < demuxer[WEBP_FF_FRAME_COUNT] else {
            ending = demuxer.isComplete ? .complete : .brokenOff
            return false
        }
        var iterator = WebPIterator()
        number += 1
        guard WebPDemuxGetFrame(demuxer.handle, Int32(number), &iterator) != 0, iterator.complete != 0,
            let start = iterator.fragment.bytes
        else {
            ending = .brokenOff
            return false
        }
        defer { WebPDemuxReleaseIterator(&iterator) }
        // The demuxer has checked that the frame lies on the canvas.
        frame = AnimationFrame(
            rectangle: Rectangle(
                x: Int(iterator.x_offset), y: Int(iterator.y_offset), width: Int(iterator.width), height: Int(iterator.height)),
            delay: max(0, Int(iterator.duration)),
            disposal: iterator.dispose_method == WEBP_MUX_DISPOSE_BACKGROUND ? .clear : .keep,
            blend: iterator.blend_method == WEBP_MUX_BLEND ? .overDown : .replace, hasAlpha: iterator.has_alpha != 0)
        data = UnsafeRawBufferPointer(start: start, count: iterator.fragment.size)
        return true
    }

    package mutating func skipPixels() -> Bool {
        dataBytes += data?.count ?? 0
        data = nil
        return true
    }

    package mutating func readPixels() throws(TranscodeError) -> FramePixels? {
        guard let data else { return nil }
        _ = skipPixels()
        if !hasRead { conversion = demuxer.conversion() }
        hasRead = true
        let (width, height) = (frame.rectangle.width, frame.rectangle.height)
        if words.count < width * height { words = try HeapBuffer(count: canvasSize.width * canvasSize.height) }
        let status = gifreel_webp_decode(
            data.baseAddress?.assumingMemoryBound(to: UInt8.self), data.count, words.base, Int32(width), Int32(height))
        switch status {
        case VP8_STATUS_OK:
            conversion?.convert(UnsafeMutableBufferPointer(start: words.base, count: width * height))
            return .colors(UnsafeBufferPointer(start: words.base, count: width * height))
        case VP8_STATUS_OUT_OF_MEMORY:
            throw .outOfMemory
        default:
            if number == 1 { throw .corrupt(.webp, .unreadableFrame) }
            ending = .brokenOff
            return nil
        }
    }
}

/// A parsed WebP container. Not thread-safe.
private struct Demuxer: ~Copyable {
    let handle: OpaquePointer
    /// Whether the file contains everything that its header announces.
    let isComplete: Bool

    init(_ bytes: UnsafeRawBufferPointer) throws(TranscodeError) {
        var file = WebPData(bytes: bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), size: bytes.count)
        var state = WEBP_DEMUX_PARSING_HEADER
        let handle = WebPDemuxPartial(&file, &state)
        guard let handle, state == WEBP_DEMUX_PARSED_HEADER || state == WEBP_DEMUX_DONE else {
            WebPDemuxDelete(handle)
            throw state == WEBP_DEMUX_PARSING_HEADER ? .incomplete(.webp) : .corrupt(.webp, .header)
        }
        self.handle = handle
        isComplete = state == WEBP_DEMUX_DONE
    }

    deinit { WebPDemuxDelete(handle) }

    /// Returns the conversion from the file's profile to sRGB; nil if there is none or it has no effect.
    func conversion() -> ColorConversion? {
        var chunk = WebPChunkIterator()
        guard self[WEBP_FF_FORMAT_FLAGS] & Int(ICCP_FLAG.rawValue) != 0, WebPDemuxGetChunk(handle, "ICCP", 1, &chunk) != 0
        else {
            return nil
        }
        defer { WebPDemuxReleaseChunkIterator(&chunk) }
        let profile = UnsafeRawBufferPointer(start: chunk.chunk.bytes, count: chunk.chunk.size)
        guard let conversion = ColorConversion(profile: profile, .colors), !conversion.isIdentity else { return nil }
        return conversion
    }

    subscript(_ feature: WebPFormatFeature) -> Int { Int(WebPDemuxGetI(handle, feature)) }
}
