/// The samples of a video: decoder ▸ canvas ▸ clock ▸ timeline ▸ converter.
///
/// A frame becomes no sample if it looks like the previous one, lies outside the requested part or exceeds the frame rate. Not
/// thread-safe.
final class SampleSource<Decoder: AnimationDecoder & ~Copyable> {
    /// The size of the planes in pixels; both sides are even.
    let width: Int
    let height: Int
    /// The part of the canvas that is shown, and its size without the pixel that an odd side gets.
    let geometry: PictureGeometry
    /// Whether the planes have one of alpha. Otherwise transparent pixels show the background.
    let hasAlpha: Bool
    /// Frames read so far.
    private(set) var frames = 0
    /// Samples given so far.
    private(set) var samples = 0
    /// The time of the sample that was given last.
    private var newest = 0

    private var decoder: Decoder
    private var canvas: Canvas
    /// Nil where dither stays.
    private let undither: VideoUndither?
    /// Pictures that look like the one that was completed last.
    private var completed: ArraySlice<Picture> = []
    /// A picture that waits for the next one that looks different: that picture helps to remove its dither.
    private var waiting: Picture?
    private let converter: Converter
    private var timeline: Timeline
    private var clock: FrameClock
    /// The area in which the planes differ from the picture: all of it at first, later the changes of dropped frames.
    private var area: Rectangle
    /// The changes of the canvas that ``area`` or the undithering does not know yet.
    private var drawn: Rectangle
    private var isAtEnd = false

    private enum Converter {
        case identity
        case scaler(VideoScaler)
        case zoom(VideoZoom)
        case alpha(AlphaConverter)
    }

    /// - Parameters:
    ///   - bytes: The whole file. It must stay valid for the lifetime of the source.
    ///   - hasAlpha: Whether transparent pixels stay transparent.
    init(
        _ bytes: UnsafeRawBufferPointer, _ summary: AnimationSummary, limits: MediaLimits, options: TranscodeOptions,
        hasAlpha: Bool = false
    ) throws(TranscodeError) {
        geometry = PictureGeometry(width: summary.width, height: summary.height, options: options)
        try geometry.check(limits, frames: SamplePlan(options.time, of: summary).count)
        self.hasAlpha = hasAlpha
        decoder = try Decoder(bytes, limits: limits)
        canvas = try Canvas(
            width: summary.width, height: summary.height, format: hasAlpha ? .rgba : .yuv(background: options.background))
        undither =
            options.undither
            ? try VideoUndither(width: summary.width, height: summary.height, format: canvas.format) : nil
        if hasAlpha {
            converter = .alpha(try AlphaConverter(geometry))
        } else if geometry.zoom > 1 || (geometry.hasMargin && !geometry.isScaled) {
            converter = .zoom(try VideoZoom(geometry, background: options.background))
        } else {
            converter = geometry.isIdentity ? .identity : .scaler(try VideoScaler(geometry, background: options.background))
        }
        timeline = Timeline(options.time, of: summary)
        clock = summary.clock
        width = geometry.evenWidth
        height = geometry.evenHeight
        area = Rectangle(x: 0, y: 0, width: summary.width, height: summary.height)
        drawn = area
    }

    /// Whether the frames end with one whose pixels cannot be decoded, even if its header is sound.
    var isBrokenOff: Bool { decoder.ending == .brokenOff }

    /// The duration of the frames read so far, in units of the source.
    var elapsed: Int { clock.now }

    /// The error for a part that begins at `start`, in hundredths of a second, after the end of all frames.
    func startPastEnd(_ start: Int) -> TranscodeError {
        .startPastEnd(start: start, duration: clock.now / (decoder.timescale / FrameClock.timescale))
    }

    /// Reads frames until one becomes a sample, and writes its picture; nil at the end.
    ///
    /// - Parameter planes: Called when there is a picture to write; they hold the sample before.
    func next(into planes: () throws(TranscodeError) -> PixelConverter.Planes) throws(TranscodeError) -> Sample? {
        while let picture = try nextPicture() {
            guard let time = timeline.admit(picture.span) else { continue }
            let changed = if let undither, !undither.needsNext { undither.update(canvas, area) } else { area }
            area = .empty
            let hasChanged = try convert(changed, into: try planes())
            // A frame that looks like the previous one extends its sample, up to the longest duration of a sample.
            guard hasChanged || samples == 0 || time - newest >= Timeline.longestSample else { continue }
            samples += 1
            newest = time
            let whole = Rectangle(x: 0, y: 0, width: width, height: height)
            let area = if case .identity = converter { changed } else { whole }
            return Sample(time: time, area: area, frame: picture.frame, gain: undither?.gain ?? 0)
        }
        return nil
    }

    /// A frame in the requested part.
    private struct Picture {
        var span: Timeline.Span
        /// Frames read so far, this one included.
        var frame: Int
    }

    /// The next picture, whose changes are added to ``area``; nil at the end.
    private func nextPicture() throws(TranscodeError) -> Picture? {
        guard let undither, undither.needsNext else {
            guard let picture = try compose() else { return nil }
            area = area.union(drawn)
            drawn = .empty
            return picture
        }
        if let picture = completed.popFirst() { return picture }
        if waiting == nil, let first = try compose() { waiting = try add(first, to: undither) }
        guard let picture = waiting else { return nil }
        waiting = nil
        while waiting == nil, let next = try compose() {
            if drawn.isEmpty { completed.append(next) } else { waiting = try add(next, to: undither) }
        }
        area = area.union(undither.complete(hasNext: waiting != nil))
        return picture
    }

    private func add(_ picture: Picture, to undither: VideoUndither) throws(TranscodeError) -> Picture {
        try undither.add(canvas, drawn)
        drawn = .empty
        return picture
    }

    /// Composes frames until one lies in the requested part; nil at the end.
    private func compose() throws(TranscodeError) -> Picture? {
        while !isAtEnd, !timeline.isOver(at: clock.now), try decoder.next(), let pixels = try decoder.readPixels() {
            drawn = drawn.union(try canvas.draw(decoder, pixels))
            undither?.enter(decoder)
            let shown = clock.advance(by: decoder.frame.delay)
            frames += 1
            if let span = timeline.place(time: shown.start, duration: shown.duration) {
                return Picture(span: span, frame: frames)
            }
        }
        isAtEnd = true
        return nil
    }

    private func convert(_ area: Rectangle, into planes: PixelConverter.Planes) throws(TranscodeError) -> Bool {
        guard let undither else { return try convert(canvas, area, into: planes) }
        return try undither.withOutput { picture throws(TranscodeError) in try convert(picture, area, into: planes) }
    }

    private func convert(
        _ canvas: borrowing Canvas, _ area: Rectangle, into planes: PixelConverter.Planes
    ) throws(TranscodeError) -> Bool {
        switch converter {
        case .identity: PixelConverter.convert(canvas, area, into: planes)
        case .zoom(let zoom): zoom.convert(canvas, area, into: planes)
        case .scaler(let scaler): try scaler.convert(canvas, area, into: planes)
        case .alpha(let converter): try converter.convert(canvas, area, into: planes)
        }
    }
}

/// A picture of a video.
struct Sample {
    /// When it is shown, in units of the timeline.
    var time: Int
    /// The part of the picture that may differ from the sample before.
    var area: Rectangle
    /// Frames read so far, that of the picture included.
    var frame: Int
    /// How much of the picture is a mean of pictures with different dither, 0…1.
    var gain: Double
}
