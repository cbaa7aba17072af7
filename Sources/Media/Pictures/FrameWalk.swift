/// The composed frames of a GIF one after the other, read only as far as they are asked for and held against the limits on
/// the way.
///
/// Not thread-safe. The bytes must stay in place as long as the walk lives.
struct FrameWalk<Decoder: AnimationDecoder & ~Copyable>: ~Copyable {
    private let bytes: UnsafeRawBufferPointer
    private let limits: MediaLimits
    private var decoder: Decoder
    /// What is shown of the frame composed last; of the format ``PixelFormat/rgba``.
    private(set) var canvas: Canvas
    /// Frames composed so far.
    private(set) var frames = 0
    /// Pixels composed so far, counted as ``MediaLimits/totalPixels`` has them.
    private var totalPixels = 0
    /// Pixels of the frames' own rectangles so far.
    private var codedPixels = 0
    /// Whether the whole file is known to hold ``MediaLimits/pixelsPerByte``.
    private var isDense = false
    /// The decoder stands at the first frame, which is yet to be composed.
    private var isAtFirst = true

    /// Opens the GIF and goes to its first frame.
    ///
    /// - Throws: ``TranscodeError`` as ``AnimationSummary`` throws it, for what comes before the first
    ///   frame's pixels.
    init(_ bytes: UnsafeRawBufferPointer, limits: MediaLimits) throws(TranscodeError) {
        var decoder = try Decoder(bytes, limits: limits)
        guard try decoder.next() else { throw AnimationSummary.errorWithoutFrames(decoder.ending) }
        let (width, height) = try AnimationSummary.checkedSize(decoder, limits)
        guard width > 0 && height > 0 else { throw .corrupt(.noCanvas) }
        let canvas = try Canvas(width: width, height: height, format: .rgba)
        self.bytes = bytes
        self.limits = limits
        self.decoder = decoder
        self.canvas = canvas
    }

    /// The raw loop count of the last looping extension seen so far; nil without one, 0 for «for ever».
    var loopCount: Int? { decoder.loopCount }

    /// Composes the next frame.
    ///
    /// - Returns: False where there is none, or not all of it; the canvas then shows the one before.
    mutating func next() throws(TranscodeError) -> Bool {
        if isAtFirst {
            isAtFirst = false
        } else {
            guard try decoder.next() else { return false }
        }
        let frame = decoder.frame.rectangle
        try limits.check(.frames, frames + 1)
        totalPixels += max(canvas.width * canvas.height, frame.width * frame.height)
        try limits.check(.totalPixels, totalPixels)
        codedPixels += frame.width * frame.height
        try checkDensity()
        guard let pixels = try decoder.readPixels() else { return false }
        _ = try canvas.draw(decoder, pixels)
        frames += 1
        return true
    }

    /// Holds the frames so far, and the next one, against ``MediaLimits/pixelsPerByte``. As blank frames may well come before
    /// others, what decides is the whole file, which is then read without decoding it.
    private mutating func checkDensity() throws(TranscodeError) {
        guard !isDense, codedPixels > limits.canvasPixels, codedPixels / max(1, decoder.dataBytes) > limits.pixelsPerByte else {
            return
        }
        var density = PixelDensity()
        var scan = try Decoder(bytes, limits: limits)
        while try scan.next() {
            density.add(scan.frame)
            _ = scan.skipPixels()
        }
        try density.check(limits, dataBytes: scan.dataBytes)
        isDense = true
    }
}
