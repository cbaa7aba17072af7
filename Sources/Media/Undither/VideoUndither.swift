/// Takes dither out of the pictures of a video: ``Undither`` in each, then ``TemporalFilter`` with its neighbours.
///
/// A picture is complete when the next one is known. Not thread-safe.
final class VideoUndither {
    private let spatial: Undither
    private let temporal: TemporalFilter
    /// Whether pictures are mixed with their neighbours; translucent ones are not.
    private let hasLuma: Bool

    init(width: Int, height: Int, format: PixelFormat) throws(TranscodeError) {
        spatial = try Undither(width: width, height: height, format: format)
        temporal = try TemporalFilter(width: width, height: height, format: format)
        hasLuma = if case .yuv = format { true } else { false }
    }

    /// Calls `body` with the picture that was completed last, in the format of the canvas.
    func withOutput<Result>(_ body: (borrowing Canvas) throws(TranscodeError) -> Result) throws(TranscodeError) -> Result {
        try body(temporal.output)
    }

    /// How much of the picture that was completed last is a mean of pictures with different dither, 0…1.
    var gain: Double { temporal.gain }

    /// Enters the palette of the frame that was drawn. Calls are needed for all frames, in order.
    func enter<Decoder: AnimationDecoder & ~Copyable>(_ decoder: borrowing Decoder) { spatial.enter(decoder) }

    /// Sets the newest picture.
    ///
    /// - Parameter area: Contains all changes since the previous picture; the first call takes the whole canvas.
    /// - Throws: ``TranscodeError/outOfMemory``.
    func add(_ canvas: borrowing Canvas, _ area: Rectangle) throws(TranscodeError) {
        let changed = spatial.update(canvas, area)
        if hasLuma, spatial.removesFilmDither {
            try temporal.add(changed, of: canvas, spatial.output, spatial.reach)
        } else {
            temporal.add(changed)
        }
    }

    /// Takes the newest picture as the one to complete next. Call it before ``add(_:_:)`` sets the one after it.
    func advance() { temporal.advance(spatial.output) }

    /// Completes a picture.
    ///
    /// - Parameter hasNext: Whether ``add(_:_:)`` has set the one after it.
    /// - Returns: A rectangle that contains all changes of the output.
    func complete(hasNext: Bool) -> Rectangle { temporal.render(hasNext: hasNext) }
}
