/// Takes dither out of the pictures of a video: ``Undither`` in each, then ``TemporalFilter`` with its neighbours, so that a picture is
/// complete when the next one is known. Pictures with alpha and very large ones are complete at once. Not thread-safe.
final class VideoUndither {
    private let spatial: Undither
    private let temporal: TemporalFilter?
    /// Larger pictures would need too much memory: 13 bytes more for each pixel.
    private static let mostPixels = 1_000_000

    init(width: Int, height: Int, format: PixelFormat) throws(TranscodeError) {
        spatial = try Undither(width: width, height: height, format: format)
        if case .yuv = format, width * height <= Self.mostPixels {
            temporal = try TemporalFilter(width: width, height: height, format: format)
        } else {
            temporal = nil
        }
    }

    /// Whether a picture is complete only when the next one is known: then call ``add(_:_:)``, ``advance()`` and ``complete(hasNext:)``
    /// for each, otherwise ``update(_:_:)``.
    var needsNext: Bool { temporal != nil }

    /// Calls `body` with the picture that was completed last, in the format of the canvas.
    func withOutput<Result>(_ body: (borrowing Canvas) throws(TranscodeError) -> Result) throws(TranscodeError) -> Result {
        if let temporal { try body(temporal.output) } else { try body(spatial.output) }
    }

    /// How much of the picture that was completed last is a mean of pictures with different dither, 0…1.
    var gain: Double { temporal?.gain ?? 0 }

    /// Enters the palette of the frame that was drawn. Calls are needed for all frames, in order.
    func enter<Decoder: AnimationDecoder & ~Copyable>(_ decoder: borrowing Decoder) { spatial.enter(decoder) }

    /// Completes a picture by itself.
    ///
    /// - Parameter area: Contains all changes since the previous picture; the first call takes the whole canvas.
    /// - Returns: A rectangle that contains all changes of the output.
    func update(_ canvas: borrowing Canvas, _ area: Rectangle) -> Rectangle { spatial.update(canvas, area) }

    /// Sets the newest picture.
    ///
    /// - Parameter area: Contains all changes since the previous picture; the first call takes the whole canvas.
    /// - Throws: ``TranscodeError/outOfMemory``.
    func add(_ canvas: borrowing Canvas, _ area: Rectangle) throws(TranscodeError) {
        let changed = spatial.update(canvas, area)
        if spatial.removesFilmDither {
            try temporal?.add(changed, of: canvas, spatial.output, spatial.reach)
        } else {
            temporal?.add(changed)
        }
    }

    /// Takes the newest picture as the one to complete next. Call it before ``add(_:_:)`` sets the one after it.
    func advance() { temporal?.advance(spatial.output) }

    /// Completes a picture.
    ///
    /// - Parameter hasNext: Whether ``add(_:_:)`` has set the one after it.
    /// - Returns: A rectangle that contains all changes of the output.
    func complete(hasNext: Bool) -> Rectangle { temporal?.render(hasNext: hasNext) ?? .empty }
}
