/// The composed frames of a GIF one after the other, read only as far as they are asked for and held against the limits on
/// the way.
///
/// Not thread-safe. The bytes must stay in place as long as the walk lives.
struct FrameWalk: ~Copyable {
    private let gif: UnsafeRawBufferPointer
    private let limits: MediaLimits
    private var reader: GIFReader
    /// What is shown of the frame composed last; of the format ``PixelFormat/rgba``.
    private(set) var canvas: Canvas
    /// Frames composed so far.
    private(set) var frames = 0
    /// Pixels composed so far, as ``MediaLimits/totalPixels`` has them.
    private var pixels = 0
    /// Pixels of the frames' own rectangles so far.
    private var codedPixels = 0
    /// Whether the whole file is known to hold ``MediaLimits/pixelsPerByte``.
    private var isDense = false
    /// The reader stands at the first frame, which is yet to be composed.
    private var isAtFirst = true

    /// Opens the GIF and goes to its first frame.
    ///
    /// - Throws: ``TranscodeError`` as ``GIFSummary/init(scanning:limits:)`` throws it, for what comes before the first
    ///   frame's pixels.
    init(_ gif: UnsafeRawBufferPointer, limits: MediaLimits) throws(TranscodeError) {
        var reader = try GIFReader(gif, limits: limits)
        guard try reader.next() else { throw GIFSummary.withoutFrames(reader.ending) }
        let (width, height) = try GIFSummary.canvasSize(reader, limits)
        guard width > 0 && height > 0 else { throw .corrupt(.noCanvas) }
        let canvas = try Canvas(width: width, height: height, format: .rgba)
        self.gif = gif
        self.limits = limits
        self.reader = reader
        self.canvas = canvas
    }

    /// The raw loop count of the last looping extension seen so far; nil without one, 0 for «for ever».
    var loopCount: Int? { reader.loopCount }

    /// Composes the next frame.
    ///
    /// - Returns: False where there is none, or not all of it; the canvas then shows the one before.
    mutating func next() throws(TranscodeError) -> Bool {
        if isAtFirst {
            isAtFirst = false
        } else {
            guard try reader.next() else { return false }
        }
        let frame = reader.frame.rectangle
        try limits.check(.frames, frames + 1)
        pixels += max(canvas.width * canvas.height, frame.width * frame.height)
        try limits.check(.totalPixels, pixels)
        codedPixels += frame.width * frame.height
        try checkDensity()
        guard let indices = try reader.readPixels() else { return false }
        _ = try canvas.draw(reader, indices: indices)
        frames += 1
        return true
    }

    /// Holds the frames so far, and the next one, against ``MediaLimits/pixelsPerByte``. As blank frames may well come before
    /// others, what decides is the whole file, which is then read without decoding it.
    private mutating func checkDensity() throws(TranscodeError) {
        guard !isDense, codedPixels > limits.canvasPixels, codedPixels / max(1, reader.dataBytes) > limits.pixelsPerByte else {
            return
        }
        var density = PixelDensity()
        var scan = try GIFReader(gif, limits: limits)
        while try scan.next() {
            density.add(scan.frame)
            _ = scan.skipPixels()
        }
        try density.check(limits, dataBytes: scan.dataBytes)
        isDense = true
    }
}

/// The pixels of all frames of a file, to be held against the bytes that make them.
struct PixelDensity {
    private var codedPixels = 0

    mutating func add(_ frame: GIFFrame) {
        codedPixels += frame.rectangle.width * frame.rectangle.height
    }

    /// Whether no frame has a pixel.
    var isEmpty: Bool { codedPixels == 0 }

    /// - Throws: ``TranscodeError/tooLarge(_:value:maximum:)`` for ``MediaLimits/pixelsPerByte``.
    func check(_ limits: MediaLimits, dataBytes: Int) throws(TranscodeError) {
        if codedPixels > limits.canvasPixels {
            try limits.check(.pixelsPerByte, codedPixels / max(1, dataBytes))
        }
    }
}
