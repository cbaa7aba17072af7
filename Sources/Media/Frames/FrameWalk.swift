/// Composes the frames of an animation one by one, on request, and checks the limits before each.
///
/// Not thread-safe. The bytes must stay valid for the lifetime of the walk.
struct FrameWalk<Decoder: AnimationDecoder & ~Copyable>: ~Copyable {
    private let bytes: UnsafeRawBufferPointer
    private let limits: MediaLimits
    private var decoder: Decoder
    /// The canvas after the last composed frame, in the format ``PixelFormat/rgba``.
    private(set) var canvas: Canvas
    /// A rectangle that contains all changes of the last composed frame.
    private(set) var changed = Rectangle.empty
    /// Frames composed so far.
    private(set) var frames = 0
    /// Pixels composed so far, counted as for ``MediaLimits/totalPixels``.
    private var totalPixels = 0
    /// Pixels in the rectangles of the composed frames so far.
    private(set) var codedPixels = 0
    /// Whether a scan found the whole file to be within ``MediaLimits/pixelsPerByte``.
    private var isDense = false
    /// Pixels of the composed frames so far, counted as for ``MediaLimits/pixelsPerByte``.
    private var countedPixels = 0
    /// Whether the decoder has read the header of the first frame, which is not composed yet.
    private var isAtFirst = true
    /// Removes dither from the canvas if requested; it receives the palettes of all frames.
    private let undither: Undither?

    /// Opens the file and reads the header of its first frame.
    ///
    /// - Parameter undithers: Whether ``withPicture(_:)`` shows the canvas without dither.
    /// - Throws: ``TranscodeError`` for an error before the pixels of the first frame.
    init(_ bytes: UnsafeRawBufferPointer, limits: MediaLimits, undithers: Bool = false) throws(TranscodeError) {
        let limits = limits.adapted(to: Decoder.format)
        var decoder = try Decoder(bytes, limits: limits)
        guard try decoder.next() else { throw Decoder.errorWithoutFrames(decoder.ending) }
        let (width, height) = decoder.canvasSize
        try limits.check(width: width, height: height)
        guard width > 0 && height > 0 else { throw .corrupt(Decoder.format, .noCanvas) }
        let canvas = try Canvas(width: width, height: height, format: .rgba)
        undither = undithers ? try Undither(width: width, height: height, format: .rgba) : nil
        self.bytes = bytes
        self.limits = limits
        self.decoder = decoder
        self.canvas = canvas
    }

    /// Bytes of image data of the frames so far.
    var dataBytes: Int { decoder.dataBytes }

    /// Whether any frame so far has pixels.
    var hasPixels: Bool { codedPixels > 0 }

    /// The repetitions after the first play, as read so far: nil for none, 0 for endless.
    var loopCount: Int? { decoder.loopCount }

    /// Composes the next frame.
    ///
    /// - Returns: False if there is no next frame or it is incomplete; the canvas then shows the previous frame.
    mutating func next() throws(TranscodeError) -> Bool {
        guard try advance() else { return false }
        let frame = decoder.frame.rectangle
        try limits.check(.frames, frames + 1)
        totalPixels += max(canvas.width * canvas.height, frame.width * frame.height)
        try limits.check(.totalPixels, totalPixels)
        codedPixels += frame.width * frame.height
        countedPixels += decoder.frame.countedPixels
        try checkDensity()
        guard let pixels = try decoder.readPixels() else { return false }
        changed = try canvas.draw(decoder, pixels)
        undither?.enter(decoder)
        frames += 1
        return true
    }

    /// Reads the header of the next frame. Returns false if there is none.
    private mutating func advance() throws(TranscodeError) -> Bool {
        guard isAtFirst else { return try decoder.next() }
        isAtFirst = false
        return true
    }

    /// Skips the next frame without decoding it. The canvas is then wrong until a frame covers all of it.
    ///
    /// - Returns: False if there is no next frame or it is incomplete.
    mutating func skip() throws(TranscodeError) -> Bool {
        guard try advance() else { return false }
        undither?.enter(decoder)
        frames += 1
        return decoder.skipPixels()
    }

    /// The number of pixels to decode to find out whether a file breaks off: about 0.2 s of work.
    private static var probedPixels: Int { 16 << 20 }

    /// Reads the rest of the file. No other function may be called afterwards.
    ///
    /// Reads the headers of all frames. In formats other than GIF, decodes frames up to a limit, too, because a frame whose
    /// data cannot be decoded ends the animation.
    ///
    /// - Returns: Whether the file breaks off. False if a later frame exceeds a limit, because the rest is then not read.
    mutating func breaksOff() -> Bool {
        do throws(TranscodeError) {
            let end = totalPixels + Self.probedPixels
            while Decoder.format != .gif, totalPixels < end, try next() {}
            while try decoder.next() {}
        } catch {
            return false
        }
        return decoder.ending == .brokenOff
    }

    /// Calls `body` with the canvas, without dither if requested.
    func withPicture<Result: ~Copyable>(
        _ body: (borrowing Canvas) throws(TranscodeError) -> Result
    ) throws(TranscodeError) -> Result {
        guard let undither else { return try body(canvas) }
        _ = undither.update(canvas, Rectangle(x: 0, y: 0, width: canvas.width, height: canvas.height))
        return try body(undither.output)
    }

    /// The number of distinct colours in the last frame's palette; 0 without a palette.
    var paletteColors: Int {
        var colors: Set<RGB> = []
        decoder.forEachPaletteColor { _, color in colors.insert(color) }
        return colors.count
    }

    /// The evidence of dither in the last picture of ``withPicture(_:)``; nil if dither is kept.
    var ditherEvidence: DitherEvidence? {
        guard var evidence = undither?.evidence else { return nil }
        evidence.concentration = ColorConcentration.share(of: canvas)
        return evidence
    }

    /// Whether ``withPicture(_:)`` removed dither.
    var hasRemovedDither: Bool { undither?.hasRemovedDither ?? false }

    /// Whether ``withPicture(_:)`` removed the dither of a film without noise of its own.
    var hasRemovedFilmDither: Bool { undither?.removesFilmDither ?? false }

    /// Checks the frames so far and the next one against ``MediaLimits/pixelsPerByte``. Blank frames may precede others, so the
    /// whole file decides: if these frames exceed the limit, the file is scanned without decoding it.
    private mutating func checkDensity() throws(TranscodeError) {
        guard !isDense, countedPixels > limits.canvasPixels, countedPixels / max(1, decoder.dataBytes) > limits.pixelsPerByte
        else { return }
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
