/// Removes dither from the pictures of a video: ``Undither`` filters each picture, then ``TemporalFilter`` combines it with its
/// neighbours, so a picture is complete once the next is known. Pictures with alpha and very large ones are complete at once.
/// Not thread-safe.
final class VideoUndither {
    private let spatial: Undither
    private let temporal: TemporalFilter?
    private var hasPicture = false
    /// The largest plane that is filtered in time, in bytes with its border: the filter needs nine planes and a canvas. A
    /// picture of 1000 × 1000 pixels just fits.
    private static let largestPlane = 1_200_000

    init(width: Int, height: Int, format: PixelFormat) throws(TranscodeError) {
        spatial = try Undither(width: width, height: height, format: format)
        if case .yuv = format, BorderedPlane.bytes(width: width, height: height) <= Self.largestPlane {
            temporal = try TemporalFilter(width: width, height: height, format: format)
        } else {
            temporal = nil
        }
    }

    /// Whether a picture is complete only once the next one is known. If so, call ``add(_:_:)`` and ``complete(hasNext:)``,
    /// otherwise ``update(_:_:)``.
    var needsNext: Bool { temporal != nil }

    /// Calls `body` with the last completed picture, in the format of the canvas.
    func withOutput<Result: ~Copyable>(
        _ body: (borrowing Canvas) throws(TranscodeError) -> Result
    ) throws(TranscodeError) -> Result {
        if let temporal { try body(temporal.output) } else { try body(spatial.output) }
    }

    /// Whether any picture so far had dither.
    var hasRemovedDither: Bool { spatial.hasRemovedDither }

    /// The share of the last completed picture that is a mean of pictures with different dither, 0…1.
    var gain: Double { temporal?.gain ?? 0 }

    /// Enters the palette of the drawn frame. Must be called for all frames, in order.
    func enter<Decoder: AnimationDecoder & ~Copyable>(_ decoder: borrowing Decoder) { spatial.enter(decoder) }

    /// Completes a picture without its neighbours.
    ///
    /// - Parameter area: Contains all changes since the previous picture; the whole canvas in the first call.
    /// - Returns: A rectangle that contains all changes of the output.
    func update(_ canvas: borrowing Canvas, _ area: Rectangle) -> Rectangle { spatial.update(canvas, area) }

    /// Sets the newest picture.
    ///
    /// - Parameter area: Contains all changes since the previous picture; the whole canvas in the first call.
    /// - Throws: ``TranscodeError/outOfMemory``.
    func add(_ canvas: borrowing Canvas, _ area: Rectangle) throws(TranscodeError) {
        if hasPicture { temporal?.advance(spatial.output) }
        hasPicture = true
        let changed = spatial.update(canvas, area)
        if spatial.removesFilmDither {
            try temporal?.add(changed, of: canvas, spatial.output, spatial.reach)
        } else {
            temporal?.add(changed)
        }
    }

    /// Completes the picture before the newest one or, at the end, the newest one.
    ///
    /// - Parameter hasNext: Whether there is a newer picture than the one to complete.
    /// - Returns: A rectangle that contains all changes of the output.
    func complete(hasNext: Bool) -> Rectangle {
        if !hasNext { temporal?.advance(spatial.output) }
        return temporal?.render(hasNext: hasNext) ?? .empty
    }
}
