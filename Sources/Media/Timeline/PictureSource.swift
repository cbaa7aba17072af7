/// The pictures of the requested part of an animation, with their times: decoder ▸ canvas ▸ undithering ▸ timeline.
///
/// A frame becomes no picture if it draws nothing, lies outside the requested part, exceeds the frame rate, or would be shown
/// too briefly. Not thread-safe.
final class PictureSource<Decoder: AnimationDecoder & ~Copyable> {
    /// The shown part of the canvas, and its size.
    let geometry: PictureGeometry
    /// Frames read so far.
    private(set) var frames = 0

    private var decoder: Decoder
    /// The composed frame; a single pixel if planes are passed.
    private var canvas: Canvas
    /// Passes the planes of a clip; nil if pictures are composed of pixels.
    let passer: PlanePasser?
    /// The planes or pixels of the last read frame, if planes are passed.
    private var pixels: FramePixels?
    /// Removes dither; nil if dither is kept.
    private let undither: VideoUndither?
    /// Frames that look like the last completed frame.
    private var completed: ArraySlice<Frame> = []
    /// A frame that waits for the next different frame, which helps to remove its dither.
    private var waiting: Frame?
    private var timeline: Timeline
    private let options: TimeOptions
    /// The number of the last frame that the timeline admits, from 1.
    private let last: Int
    private let isBrokenOffInHeaders: Bool
    private var hasPicture = false
    /// The canvas area that differs from the last picture, including changes of frames without a picture; initially all of it.
    private var area: Rectangle
    /// The changes of the canvas not yet added to ``area`` or to the undithering.
    private var drawn: Rectangle
    private var isAtEnd = false

    /// A frame in the requested part.
    private struct Frame {
        var span: Timeline.Span
        /// The number of the frame, from 1.
        var number: Int
    }

    /// - Parameter takesPlanes: Whether ``passPlanes(into:)`` may replace ``withPicture(_:)``, see ``passer``.
    init(
        _ source: ScannedSource<Decoder>, format: PixelFormat, _ pace: Timeline.Pace, takesPlanes: Bool = false
    ) throws(TranscodeError) {
        let (summary, options, plan) = (source.summary, source.options, source.plan)
        geometry = source.geometry
        try geometry.check(source.limits, frames: plan.count)
        decoder = try Decoder(source.bytes, limits: source.limits)
        if takesPlanes, !options.undithers, let siting = decoder.siting {
            // In an image, browsers assume centred chroma.
            passer = try PlanePasser(geometry, siting, keepsSiting: pace == .video)
        } else {
            passer = nil
        }
        canvas = try Canvas(
            width: passer == nil ? summary.width : 1, height: passer == nil ? summary.height : 1, format: format)
        undither =
            options.undithers ? try VideoUndither(width: summary.width, height: summary.height, format: format) : nil
        timeline = Timeline(options.time, of: summary, pace)
        self.options = options.time
        last = plan.last
        isBrokenOffInHeaders = summary.ending == .brokenOff
        area = Rectangle(x: 0, y: 0, width: summary.width, height: summary.height)
        drawn = area
    }

    /// Whether dither was removed from a picture so far.
    var isUndithered: Bool { undither?.hasRemovedDither ?? false }

    /// Units per second of the pictures' times.
    var timescale: Int { timeline.timescale }

    /// The end time of the last picture. Known after the last call of ``next(repeatingAt:)``.
    var end: Int { timeline.length }

    /// Whether the source breaks off before or within a frame, even one whose header is sound.
    var isBrokenOff: Bool { isBrokenOffInHeaders || decoder.ending == .brokenOff }

    /// Composes frames until one becomes a picture. Returns nil at the end.
    ///
    /// - Parameter repetition: The time from which a frame becomes a picture even if it draws nothing.
    /// - Throws: ``TranscodeError``; `incomplete` or `startPastEnd` at the end of a source without a picture.
    func next(repeatingAt repetition: Int = .max) throws(TranscodeError) -> TimedPicture? {
        while let frame = try nextFrame() {
            guard let admitted = timeline.admit(frame.span), !area.isEmpty || admitted >= repetition,
                let time = timeline.show(admitted, frame.span, isLast: frame.number >= last)
            else { continue }
            let changed = if let undither, !undither.needsNext { undither.update(canvas, area) } else { area }
            area = .empty
            hasPicture = true
            return TimedPicture(time: time, area: changed, frame: frame.number, gain: undither?.gain ?? 0)
        }
        guard frames > 0 else { throw .incomplete(Decoder.format) }
        guard hasPicture else {
            let hundredth = decoder.timescale / FrameClock.timescale
            throw .startPastEnd(start: options.start, duration: timeline.elapsed / hundredth)
        }
        return nil
    }

    /// Calls `body` with the last returned picture.
    func withPicture<Result: ~Copyable>(
        _ body: (borrowing Canvas) throws(TranscodeError) -> Result
    ) throws(TranscodeError) -> Result {
        guard let undither else { return try body(canvas) }
        return try undither.withOutput(body)
    }

    /// Writes the planes of the last returned picture. Call this only if ``passer`` is not nil.
    ///
    /// - Parameter target: Planes that hold the previous picture.
    /// - Returns: Whether a sample changed.
    func passPlanes(into target: FramePlanes) throws(TranscodeError) -> Bool {
        guard let passer, let pixels else { return false }
        switch pixels {
        case .planes(let planes): return try passer.pass(planes, into: target)
        case .colors(let words): return try passer.pass(words, size: decoder.canvasSize, into: target)
        case .indices: return false
        }
    }

    /// Returns the last returned picture, cropped and scaled.
    func stillPicture() throws(TranscodeError) -> StillPicture {
        try withPicture { canvas throws(TranscodeError) in try StillPicture(canvas, geometry, background: nil) }
    }

    /// Returns the next frame in the requested part and adds its changes to ``area``; nil at the end.
    private func nextFrame() throws(TranscodeError) -> Frame? {
        guard let undither, undither.needsNext else {
            guard let frame = try compose() else { return nil }
            area = area.union(drawn)
            drawn = .empty
            return frame
        }
        if let frame = completed.popFirst() { return frame }
        if waiting == nil, let first = try compose() { waiting = try add(first, to: undither) }
        guard let frame = waiting else { return nil }
        waiting = nil
        while waiting == nil, let next = try compose() {
            if drawn.isEmpty { completed.append(next) } else { waiting = try add(next, to: undither) }
        }
        area = area.union(undither.complete(hasNext: waiting != nil))
        return frame
    }

    private func add(_ frame: Frame, to undither: VideoUndither) throws(TranscodeError) -> Frame {
        try undither.add(canvas, drawn)
        drawn = .empty
        return frame
    }

    /// Composes frames until one lies in the requested part. Returns nil at the end.
    private func compose() throws(TranscodeError) -> Frame? {
        while !isAtEnd, !timeline.isOver, try decoder.next(), let changed = try draw() {
            drawn = drawn.union(changed)
            undither?.enter(decoder)
            frames += 1
            if let span = timeline.advance(by: decoder.frame.delay) { return Frame(span: span, number: frames) }
        }
        isAtEnd = true
        return nil
    }

    /// Draws the decoder's frame, or reads its planes.
    ///
    /// - Returns: A rectangle that contains all changes; nil if the source ends inside the frame.
    private func draw() throws(TranscodeError) -> Rectangle? {
        if passer != nil {
            pixels = try decoder.readPlanes()
            return pixels == nil ? nil : decoder.frame.rectangle
        }
        guard let pixels = try decoder.readPixels() else { return nil }
        return try canvas.draw(decoder, pixels)
    }
}

/// A picture of a ``PictureSource`` or a ``SampleSource``.
struct TimedPicture {
    /// The display time, in units of the timeline.
    var time: Int
    /// A part that contains all differences from the previous picture: of the canvas or, for a sample, of its planes.
    var area: Rectangle
    /// Frames read so far, including the picture's.
    var frame: Int
    /// The degree to which the picture is averaged over pictures with different dither, 0…1.
    var gain: Double
}
