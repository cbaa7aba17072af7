/// The pictures of an animation as colours with alpha: decoder ▸ canvas ▸ clock ▸ timeline ▸ scaler.
///
/// A frame becomes no picture if it draws nothing, lies outside the requested part or exceeds the frame rate. Times are rounded to the
/// units of the format. Not thread-safe.
struct PictureSequence<Decoder: AnimationDecoder & ~Copyable>: ~Copyable {
    let geometry: PictureGeometry
    /// When the last picture is shown, in units of the format.
    private(set) var time = 0
    /// The least time for which a picture is shown, in units of the format. Browsers show one of up to 10 ms for 100 ms.
    private let shortest: Int
    /// Units per second of the format.
    private let timescale: Int
    private let summary: AnimationSummary
    private let options: TranscodeOptions
    private var walk: FrameWalk<Decoder>
    private var timeline: Timeline
    private var clock: FrameClock
    private var hasPicture = false
    /// Whether a frame was drawn since the last picture.
    private var isChanged = true

    /// - Parameters:
    ///   - bytes: The whole file. It must stay valid for the lifetime of the sequence.
    ///   - timescale: Units per second of the format.
    ///   - shortest: The least time for which a picture is shown, in units of the format.
    init(
        _ bytes: UnsafeRawBufferPointer, _ summary: AnimationSummary, limits: MediaLimits, options: TranscodeOptions,
        timescale: Int, shortest: Int
    ) throws(TranscodeError) {
        geometry = PictureGeometry(width: summary.width, height: summary.height, options: options)
        try geometry.check(limits, frames: SamplePlan(options.time, of: summary).count)
        walk = try FrameWalk(bytes, limits: limits, undithers: options.undither)
        timeline = Timeline(options.time, of: summary)
        clock = FrameClock(timescale: summary.timescale)
        self.summary = summary
        self.options = options
        self.timescale = timescale
        self.shortest = shortest
    }

    /// Frames read so far.
    var frames: Int { walk.frames }

    /// Whether the source breaks off before or within a frame.
    var isBrokenOff: Bool { summary.ending == .brokenOff || walk.isBrokenOff }

    /// When the last picture ends, in units of the format. Known after the last call of ``next()``.
    var end: Int { max(rounded(timeline.length(of: clock.now)), time + shortest) }

    /// Composes frames until one becomes a picture; nil at the end.
    ///
    /// - Throws: ``TranscodeError``; `incomplete` or `startPastEnd` at the end of a sequence without a picture.
    mutating func next() throws(TranscodeError) -> StillPicture? {
        while !timeline.isOver(at: clock.now), walk.frames < summary.delays.count, try walk.next() {
            let shown = clock.advance(by: summary.delays[walk.frames - 1])
            if !walk.changed.isEmpty { isChanged = true }
            guard let span = timeline.place(time: shown.start, duration: shown.duration),
                let exact = timeline.admit(span), isChanged, admit(exact, until: span.end)
            else { continue }
            isChanged = false
            return try walk.withPicture { canvas throws(TranscodeError) in
                try StillPicture(canvas, geometry, background: nil)
            }
        }
        guard walk.frames > 0 else { throw .incomplete(Decoder.format) }
        guard hasPicture else {
            let unit = summary.timescale / FrameClock.timescale
            throw .startPastEnd(start: options.time.start, duration: clock.now / unit)
        }
        return nil
    }

    /// Sets ``time`` to that of a picture. It is later than requested where the previous picture would be shown too shortly.
    ///
    /// - Returns: False if no time is left for the picture.
    private mutating func admit(_ exact: Int, until end: Int) -> Bool {
        let start = max(rounded(exact), hasPicture ? time + shortest : 0)
        guard !hasPicture || rounded(end) > start else { return false }
        hasPicture = true
        time = start
        return true
    }

    /// A time of the timeline in units of the format.
    private func rounded(_ time: Int) -> Int {
        let (seconds, rest) = time.quotientAndRemainder(dividingBy: timeline.timescale)
        return seconds * timescale + (rest * timescale + timeline.timescale / 2) / timeline.timescale
    }
}

/// The differences between pictures of the same size.
enum PictureDifference {
    /// The smallest rectangle that contains all pixels that differ.
    static func bounds(
        _ first: UnsafePointer<UInt32>, _ second: UnsafePointer<UInt32>, width: Int, height: Int
    ) -> Rectangle {
        var (left, right, top, bottom) = (width, 0, height, 0)
        for y in 0..<height {
            let (one, other) = (first + y * width, second + y * width)
            var start = 0
            while start < width, one[start] == other[start] { start &+= 1 }
            if start == width { continue }
            var end = width
            while one[end &- 1] == other[end &- 1] { end &-= 1 }
            (left, right) = (min(left, start), max(right, end))
            (top, bottom) = (min(top, y), y + 1)
        }
        return Rectangle(x: left, y: top, width: right - left, height: bottom - top)
    }
}
