/// The pictures of the requested part of an animation, with their times: decoder ▸ canvas ▸ undithering ▸ timeline.
///
/// A frame becomes no picture if it draws nothing, lies outside the requested part, exceeds the frame rate, or would be shown too
/// shortly. Not thread-safe.
final class PictureSource<Decoder: AnimationDecoder & ~Copyable> {
    /// The part of the canvas that is shown, and its size.
    let geometry: PictureGeometry
    /// Frames read so far.
    private(set) var frames = 0

    private var decoder: Decoder
    /// Of one pixel where planes are passed.
    private var canvas: Canvas
    /// Passes the planes of a clip; nil where its pictures are composed of pixels.
    let passer: PlanePasser?
    /// The planes or pixels of the frame that was read last, where planes are passed.
    private var pixels: FramePixels?
    /// Nil where dither stays.
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
    /// The area in which the canvas differs from the last picture: all of it at first, later also the changes of frames without a picture.
    private var area: Rectangle
    /// The changes of the canvas that ``area`` or the undithering does not know yet.
    private var drawn: Rectangle
    private var isAtEnd = false

    /// A frame in the requested part.
    private struct Frame {
        var span: Timeline.Span
        /// From 1.
        var number: Int
    }

    struct Picture {
        /// When it is shown, in units of ``PictureSource/timescale``.
        var time: Int
        /// A part of the canvas that contains all differences from the picture before.
        var area: Rectangle
        /// Frames read so far, including the picture's.
        var frame: Int
        /// How much of the picture is a mean of pictures with different dither, 0…1.
        var gain: Double
    }

    /// - Parameters:
    ///   - bytes: The whole file. It must stay valid for the lifetime of the source.
    ///   - format: Of the canvas.
    ///   - pace: Of the output format.
    ///   - takesPlanes: Whether ``passPlanes(into:)`` may take the place of ``withPicture(_:)``, see ``passer``.
    init(
        _ bytes: UnsafeRawBufferPointer, _ summary: AnimationSummary, limits: MediaLimits, options: TranscodeOptions,
        format: PixelFormat, _ pace: Timeline.Pace, takesPlanes: Bool = false
    ) throws(TranscodeError) {
        let plan = SamplePlan(options.time, of: summary)
        geometry = PictureGeometry(width: summary.width, height: summary.height, options: options)
        try geometry.check(limits, frames: plan.count)
        decoder = try Decoder(bytes, limits: limits)
        if takesPlanes, !options.undithers, let siting = decoder.siting {
            // Browsers take chroma in the middle of its pixels in an image.
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

    /// Whether dither was taken out of a picture so far.
    var isUndithered: Bool { undither?.hasRemovedDither ?? false }

    /// Units per second of the pictures' times.
    var timescale: Int { timeline.timescale }

    /// When the last picture ends. Known after the last call of ``next(repeatingAt:)``.
    var end: Int { timeline.length }

    /// Whether the source breaks off before or within a frame, even one whose header is sound.
    var isBrokenOff: Bool { isBrokenOffInHeaders || decoder.ending == .brokenOff }

    /// Composes frames until one becomes a picture; nil at the end.
    ///
    /// - Parameter repetition: The time from which a frame becomes a picture even if it draws nothing.
    /// - Throws: ``TranscodeError``; `incomplete` or `startPastEnd` at the end of a source without a picture.
    func next(repeatingAt repetition: Int = .max) throws(TranscodeError) -> Picture? {
        while let frame = try nextFrame() {
            guard let admitted = timeline.admit(frame.span), !area.isEmpty || admitted >= repetition,
                let time = timeline.show(admitted, frame.span, isLast: frame.number >= last)
            else { continue }
            let changed = if let undither, !undither.needsNext { undither.update(canvas, area) } else { area }
            area = .empty
            hasPicture = true
            return Picture(time: time, area: changed, frame: frame.number, gain: undither?.gain ?? 0)
        }
        guard frames > 0 else { throw .incomplete(Decoder.format) }
        guard hasPicture else {
            let hundredth = decoder.timescale / FrameClock.timescale
            throw .startPastEnd(start: options.start, duration: timeline.elapsed / hundredth)
        }
        return nil
    }

    /// Calls `body` with the picture that was returned last.
    func withPicture<Result: ~Copyable>(
        _ body: (borrowing Canvas) throws(TranscodeError) -> Result
    ) throws(TranscodeError) -> Result {
        guard let undither else { return try body(canvas) }
        return try undither.withOutput(body)
    }

    /// Writes the planes of the picture that was returned last. Only where ``passer`` is not nil.
    ///
    /// - Parameter target: Holds the picture before.
    /// - Returns: Whether a sample changed.
    func passPlanes(into target: PixelConverter.Planes) throws(TranscodeError) -> Bool {
        guard let passer, let pixels else { return false }
        switch pixels {
        case .planes(let planes): return try passer.pass(planes, into: target)
        case .colors(let words): return try passer.pass(words, size: decoder.canvasSize, into: target)
        case .indices: return false
        }
    }

    /// The picture that was returned last, cropped and scaled.
    func stillPicture() throws(TranscodeError) -> StillPicture {
        try withPicture { canvas throws(TranscodeError) in try StillPicture(canvas, geometry, background: nil) }
    }

    /// The next frame in the requested part, whose changes are added to ``area``; nil at the end.
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

    /// Composes frames until one lies in the requested part; nil at the end.
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

    /// Draws the decoder's frame, or takes its planes.
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
