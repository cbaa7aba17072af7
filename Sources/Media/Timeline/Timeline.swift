/// Maps the times of frames to times of pictures by the requested part, speed, maximum frame rate and format.
///
/// If possible, the time unit makes every frame's time a whole number: at speed p/q, in lowest terms, a second has p times as
/// many units as in the source, and each source unit lasts q units. Sources with unusual fractions of seconds or very long
/// frames would need too many. Their unit is the finest power of ten that fits, and times are rounded to it.
struct Timeline: Sendable, Equatable {
    /// The times that a format supports.
    enum Pace: Sendable, Equatable {
        /// A video: each picture has its exact time, however short.
        case video
        /// An animated image: no picture is as short as those that browsers show for 100 ms. Times are rounded to the
        /// timescale, or exact if it is nil.
        case image(timescale: Int?)
    }

    /// The number of units after which an unchanged picture becomes another sample.
    ///
    /// MP4 uses 32 bits for the duration of a sample and for the distance between its decoding and its composition time
    /// (ISO/IEC 14496-12 §8.6.1), and libavformat accepts 31. A frame lasts at most this many units, so no sample lasts more
    /// than 2²⁸, and no sample is shown 2³⁰ units before or after it is decoded: x264 reorders by at most three samples here.
    static let longestSample = 1 << 27
    /// The units per second for sources whose exact times do not fit, finest first.
    private static let roundedTimescales = [1_000_000, 100_000, 10_000, 1000, 100, 10]

    /// Units per second of the times of pictures.
    let timescale: Int
    /// Units per second of spans, and of the frame rate limit.
    private let exactTimescale: Int
    /// Exact units per unit of the source, as a fraction.
    private let numerator: Int
    private let denominator: Int
    /// The requested part, in units of the source.
    private let start: Int
    private let end: Int
    /// The maximum by which rounding may shorten the time between two frames, in exact units.
    private let tolerance: Int
    /// The times from which the frame rate limit allows the next frame; nil without a limit.
    private var grid: TimeGrid?
    /// The time of the last admitted frame, in exact units.
    private var newest: Int?
    private var clock: FrameClock
    /// The minimum display time of a picture, in units of ``timescale``; 0 without a limit.
    private let shortest: Int
    /// The expected length of an image, in units of ``timescale``.
    private var expected = 0
    /// The time of the last shown picture, in units of ``timescale``.
    private var shown: Int?

    init(_ options: TimeOptions, of summary: AnimationSummary, _ pace: Pace = .video) {
        let delays = summary.delays.lazy.map(summary.shownDelay)
        self.init(
            options, source: summary.timescale, longestFrame: delays.max() ?? 0, isSourceRounded: summary.hasRoundedDelays,
            clock: summary.clock, duration: delays.reduce(0, +), pace)
    }

    /// - Parameters:
    ///   - source: Units per second of the source's times: a multiple of ``FrameClock/timescale``.
    ///   - longestFrame: The longest time a frame is shown, in units of the source.
    ///   - isSourceRounded: Whether the source's times are rounded to its units.
    ///   - clock: The clock of the source; nil for a clock that replaces delays as browsers do.
    ///   - duration: The duration of the whole source, in its units. Required for images.
    init(
        _ options: TimeOptions, source: Int = FrameClock.timescale, longestFrame: Int = Int(UInt16.max),
        isSourceRounded: Bool = false, clock: FrameClock? = nil, duration: Int = 0, _ pace: Pace = .video
    ) {
        let divisor = greatestCommonDivisor(options.speed, TimeOptions.thousand)
        let exact = source * (options.speed / divisor)
        let fitting = TimeOptions.thousand / divisor
        if FactRange.timescale.contains(exact), longestFrame * fitting <= Self.longestSample {
            (exactTimescale, numerator, denominator) = (exact, fitting, 1)
        } else {
            let seconds = (longestFrame * TimeOptions.thousand / options.speed) / source + 1
            exactTimescale = Self.roundedTimescales.first { seconds * $0 <= Self.longestSample } ?? 1
            let (units, sourceUnits) = (exactTimescale * TimeOptions.thousand, source * options.speed)
            let common = greatestCommonDivisor(units, sourceUnits)
            (numerator, denominator) = (units / common, sourceUnits / common)
        }
        // A rounded time is off by up to half a unit of the source or of the video, and a difference by up to a whole unit.
        let sourceUnit = (numerator + denominator - 1) / denominator
        tolerance = (isSourceRounded ? sourceUnit : 0) + (denominator > 1 ? 1 : 0)
        let perHundredth = source / FrameClock.timescale
        start = options.start * perHundredth
        end = options.end.map { $0 * perHundredth } ?? .max
        let perThousand = exactTimescale * TimeOptions.thousand
        grid = options.ceiling.map { TimeGrid(numerator: perThousand, denominator: $0) }
        self.clock = clock ?? FrameClock(timescale: source)
        switch pace {
        case .video:
            (timescale, shortest) = (exactTimescale, 0)
        case .image(let units):
            let timescale = units ?? perThousand / TimeOptions.thousand
            self.timescale = timescale
            shortest = FrameClock.shortestDelay(timescale: timescale)
        }
        if pace != .video { expected = rounded(scaled(min(duration, end) - start)) }
    }

    /// The part of the video in which a frame is shown, in exact units.
    struct Span: Equatable {
        var start: Int
        var end: Int
    }

    /// Adds the next frame of the source, with its coded delay.
    ///
    /// - Returns: The frame's part of the video; nil if the frame lies outside the requested part.
    mutating func advance(by delay: Int) -> Span? {
        let (time, duration) = clock.advance(by: delay)
        let (first, last) = (max(time, start), min(time + duration, end))
        guard first < last else { return nil }
        return Span(start: scaled(first - start), end: scaled(last - start))
    }

    /// Returns a time of the source in exact units, rounded.
    private func scaled(_ time: Int) -> Int {
        if denominator == 1 { return time * numerator }
        let (whole, rest) = time.quotientAndRemainder(dividingBy: denominator)
        return whole * numerator + (rest * numerator + denominator / 2) / denominator
    }

    /// Admits a frame and returns the time at which the frame rate limit allows it. Returns nil if the frame is dropped, so
    /// that the previous one is shown longer. Call this for every frame of the requested part, in order.
    ///
    /// Admitted frames usually keep their times. Two of them may be as close as half the minimum distance, but there are no
    /// more of them than the limit allows: one in ten is dropped if frames come every 30 ms and the limit is one in 33⅓ ms. A
    /// frame that comes too soon starts later if it lasts at least the minimum distance, such as a pause after a short frame.
    mutating func admit(_ span: Span) -> Int? {
        // Rounding can give two frames of a source the same time.
        if let newest, span.start <= newest { return nil }
        var time = span.start
        if let newest, let grid {
            let earliest = max(grid.next, newest + (grid.distance + 1) / 2) - tolerance
            if span.start < earliest {
                guard span.end - span.start >= grid.distance else { return nil }
                time = earliest
            }
        }
        grid?.advance(past: time, isFirst: newest == nil)
        newest = time
        return time
    }

    /// Returns the display time of a picture, in units of ``timescale``; nil if the picture is left out, so that the previous
    /// one is shown longer. Call this for every admitted frame that looks different from the previous picture, in order.
    ///
    /// In an image, a picture that comes too soon starts later, and the last picture starts earlier, so that each is shown long
    /// enough and the image lasts as long as the source.
    ///
    /// - Parameters:
    ///   - time: The frame's time, from ``admit(_:)``.
    ///   - isLast: Whether no frame is admitted after it.
    mutating func show(_ time: Int, _ span: Span, isLast: Bool) -> Int? {
        guard shortest > 0 else { return time }
        var start = rounded(time)
        if let shown {
            let earliest = shown + shortest
            // Leaves room for the last picture, which remains visible after the animation has been played.
            let latest = expected - (isLast ? 1 : 2) * shortest
            start = max(start, earliest)
            if isLast { start = max(earliest, min(start, latest)) }
            guard start <= latest, isLast || start < rounded(span.end) else { return nil }
        }
        shown = start
        return start
    }

    /// Returns an exact time in units of ``timescale``.
    private func rounded(_ time: Int) -> Int {
        if timescale == exactTimescale { return time }
        let (seconds, rest) = time.quotientAndRemainder(dividingBy: exactTimescale)
        return seconds * timescale + (rest * timescale + exactTimescale / 2) / exactTimescale
    }

    /// Whether no later frame lies in the requested part.
    var isOver: Bool { clock.now >= end }

    /// The duration of the frames so far, in units of the source.
    var elapsed: Int { clock.now }

    /// The video length of the frames so far, in units of ``timescale``. At most 0 if they end before the requested part.
    var length: Int {
        let length = rounded(scaled(min(clock.now, end) - start))
        // A source may break off earlier than its headers state.
        return shown.map { max(length, $0 + shortest) } ?? length
    }
}

/// Evenly spaced times. Their distance may be a fractional number of units.
private struct TimeGrid: Sendable, Equatable {
    /// The distance in units, as a fraction.
    private let numerator: Int
    private let denominator: Int
    /// The next time: whole units, and the rest in parts of the denominator.
    private var units = 0
    private var rest = 0

    init(numerator: Int, denominator: Int) {
        self.numerator = numerator
        self.denominator = denominator
    }

    /// The distance, rounded up.
    var distance: Int { (numerator + denominator - 1) / denominator }

    /// The next time, rounded up.
    var next: Int { units + (rest > 0 ? 1 : 0) }

    /// Moves to the next time. After a pause, the grid restarts at `time`.
    mutating func advance(past time: Int, isFirst: Bool) {
        if isFirst || time - next >= distance { (units, rest) = (time, 0) }
        rest += numerator % denominator
        units += numerator / denominator + rest / denominator
        rest %= denominator
    }
}
