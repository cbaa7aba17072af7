/// What a GIF says of itself, found without decoding a pixel.
package struct GIFSummary: Sendable, Equatable {
    /// The canvas, in pixels: the logical screen, or the first frame's size where the screen has none.
    package var width = 0
    package var height = 0
    /// Each image's delay as coded, in hundredths of a second.
    package var delays: [UInt16] = []
    /// The raw loop count; nil for «once», 0 for «for ever».
    package var loopCount: Int?
    /// Whether some frame has a transparent index or leaves part of the canvas untouched or cleared.
    package var hasTransparency = false
    /// Whether the file has no trailer.
    package var isBrokenOff = false

    /// Width times height of the logical screen (GIF89a §18), as far as bytes that may be no GIF say; 0 where they are too few.
    package static func screenPixels(of bytes: UnsafeRawBufferPointer) -> Int {
        guard bytes.count >= 10 else { return 0 }
        func word(_ at: Int) -> Int { Int(bytes[at]) | Int(bytes[at + 1]) << 8 }
        return word(6) * word(8)
    }

    /// Reads all records and holds each against the limits.
    ///
    /// - Throws: ``TranscodeError``; a GIF without a frame, or without one that has a pixel, is `incomplete` or `corrupt`.
    package init(scanning bytes: UnsafeRawBufferPointer, limits: MediaLimits) throws(TranscodeError) {
        var reader = try GIFReader(bytes, limits: limits)
        width = reader.screenWidth
        height = reader.screenHeight
        var pixels = 0
        var density = PixelDensity()
        var duration = 0
        while try reader.next() {
            let frame = reader.frame
            if delays.isEmpty {
                (width, height) = try Self.canvasSize(reader, limits)
                hasTransparency = frame.rectangle != Rectangle(x: 0, y: 0, width: width, height: height)
            }
            if frame.transparentIndex != nil || frame.disposal == .clear { hasTransparency = true }
            try limits.check(.frames, delays.count + 1)
            try append(UInt16(frame.delay))
            let area = frame.rectangle.width * frame.rectangle.height
            density.add(frame)
            pixels += max(width * height, area)
            try limits.check(.totalPixels, pixels)
            duration += FrameClock.shownDelay(frame.delay)
            try limits.check(.duration, duration)
            _ = reader.skipPixels()
        }
        loopCount = reader.loopCount
        isBrokenOff = reader.ending == .brokenOff
        if delays.isEmpty { throw Self.withoutFrames(reader.ending) }
        if width == 0 || height == 0 { throw .corrupt(.noCanvas) }
        if density.isEmpty { throw .corrupt(.emptyFrames) }
        // Only at the end: a film may well begin with a few blank frames.
        try density.check(limits, dataBytes: reader.dataBytes)
    }

    /// Appends a delay. An array that cannot grow ends the process, so before it grows it is tried whether it can.
    private mutating func append(_ delay: UInt16) throws(TranscodeError) {
        if delays.count == delays.capacity {
            let wanted = max(256, 2 * delays.count)
            _ = try HeapBuffer<UInt16>(count: wanted + 64)
            delays.reserveCapacity(wanted)
        }
        delays.append(delay)
    }

    /// The canvas of a GIF whose reader stands at its first frame: browsers take that frame's size where the logical screen
    /// has none.
    ///
    /// - Throws: ``TranscodeError/tooLarge(_:value:maximum:)``.
    static func canvasSize(
        _ reader: borrowing GIFReader, _ limits: MediaLimits
    ) throws(TranscodeError) -> (width: Int, height: Int) {
        let width = reader.screenWidth == 0 ? reader.frame.rectangle.maxX : reader.screenWidth
        let height = reader.screenHeight == 0 ? reader.frame.rectangle.maxY : reader.screenHeight
        try limits.check(.side, max(width, height))
        try limits.check(.canvasPixels, width * height)
        return (width, height)
    }

    /// What is wrong with a GIF that came to its end before its first frame.
    static func withoutFrames(_ ending: GIFReader.Ending?) -> TranscodeError {
        ending == .brokenOff ? .incomplete : .corrupt(.noFrames)
    }
}
