/// Maps the times of frames to times of a video by the requested part, speed and maximum frame rate.
///
/// The video's time unit makes every frame's time a whole number, if that is possible: at speed p/q, in lowest terms, a second has p
/// times as many units as in the source, of whose units each takes q. Sources with unusual fractions of seconds, or with very long
/// frames, would have too many units. For them a unit is the power of ten that is precise enough, and times are rounded to it.
struct Timeline: Sendable, Equatable {
    /// Units after which an unchanged picture becomes another sample.
    ///
    /// MP4 has 32 bits for the duration of a sample and for the distance between its decoding and its composition time
    /// (ISO/IEC 14496-12 §8.6.1), and libavformat takes 31. A frame lasts at most this many units, so no sample lasts
    /// more than 2²⁸, and no sample is shown 2³⁰ units before or after it is decoded: x264 reorders by at most three samples here.
    static let longestSample = 1 << 27
    /// The units per second of sources whose exact times do not fit, from the finest.
    private static let roundedTimescales = [1_000_000, 100_000, 10_000, 1000, 100, 10]

    /// Units per second.
    let timescale: Int
    /// The video's units in one unit of the source, as a fraction.
    private let numerator: Int
    private let denominator: Int
    /// In units of the source.
    private let start: Int
    private let end: Int
    /// By how much rounding may shorten the time from one frame to another, in units.
    private let tolerance: Int
    /// The times from which on the frame rate limit allows the next frame; nil without a limit.
    private var grid: TimeGrid?
    /// The time of the frame that was admitted last, in units.
    private var newest: Int?

    init(_ options: TimeOptions, of summary: AnimationSummary) {
        let longest = summary.delays.reduce(0) { max($0, summary.shownDelay($1)) }
        self.init(
            options, source: summary.timescale, longestFrame: longest, isSourceRounded: summary.hasRoundedDelays)
    }

    /// - Parameters:
    ///   - source: Units per second of the source's times: a multiple of ``FrameClock/timescale``.
    ///   - longestFrame: The longest time a frame is shown, in units of the source.
    ///   - isSourceRounded: Whether the source's times are rounded to its units.
    init(
        _ options: TimeOptions, source: Int = FrameClock.timescale, longestFrame: Int = Int(UInt16.max),
        isSourceRounded: Bool = false
    ) {
        let divisor = greatestCommonDivisor(options.speed, TimeOptions.thousand)
        let exact = source * (options.speed / divisor)
        let fitting = TimeOptions.thousand / divisor
        if FactRange.timescale.contains(exact), longestFrame * fitting <= Self.longestSample {
            (timescale, numerator, denominator) = (exact, fitting, 1)
        } else {
            let seconds = (longestFrame * TimeOptions.thousand / options.speed) / source + 1
            timescale = Self.roundedTimescales.first { seconds * $0 <= Self.longestSample } ?? 1
            let (units, sourceUnits) = (timescale * TimeOptions.thousand, source * options.speed)
            let common = greatestCommonDivisor(units, sourceUnits)
            (numerator, denominator) = (units / common, sourceUnits / common)
        }
        // Where times are rounded, each is off by up to half a unit, of the source or of the video, and a difference by up to a whole one.
        let sourceUnit = (numerator + denominator - 1) / denominator
        tolerance = (isSourceRounded ? sourceUnit : 0) + (denominator > 1 ? 1 : 0)
        let perHundredth = source / FrameClock.timescale
        start = options.start * perHundredth
        end = options.end.map { $0 * perHundredth } ?? .max
        grid = options.ceiling.map { TimeGrid(numerator: timescale * TimeOptions.thousand, denominator: $0) }
    }

    /// The part of the video in which a frame is shown, in units.
    struct Span: Equatable {
        var start: Int
        var end: Int
    }

    /// The video's part for a frame that the source shows at `time` for `duration`, both in the source's units. Nil if the frame lies
    /// outside the requested part.
    func place(time: Int, duration: Int) -> Span? {
        let (first, last) = (max(time, start), min(time + duration, end))
        guard first < last else { return nil }
        return Span(start: scaled(first - start), end: scaled(last - start))
    }

    /// A time of the source in units of the video, rounded.
    private func scaled(_ time: Int) -> Int {
        if denominator == 1 { return time * numerator }
        let (whole, rest) = time.quotientAndRemainder(dividingBy: denominator)
        return whole * numerator + (rest * numerator + denominator / 2) / denominator
    }

    /// The time at which the frame rate limit allows a frame, which is then admitted. Nil if the frame is dropped, so that the previous
    /// one is shown longer. Call it for every frame of the requested part, in order.
    ///
    /// Admitted frames keep their times, so that the distance of two may be as short as half the least one, but there are no more of
    /// them than the limit allows: one in ten is dropped where frames come every 30 ms and the limit is one in 33⅓ ms. A frame that
    /// comes too soon and is longer than the least distance, such as a pause after a short frame, starts later.
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

    /// Whether the requested part ends at or before `time`, in the source's units.
    func isOver(at time: Int) -> Bool { time >= end }

    /// The length of the video, in units, for a source of this duration in its units. At most 0 if the source ends before the
    /// requested part begins.
    func length(of duration: Int) -> Int { scaled(min(duration, end) - start) }
}

/// Times at a distance that may be a fraction of units.
private struct TimeGrid: Sendable, Equatable {
    private let numerator: Int
    private let denominator: Int
    /// The next time: whole units, and the rest in parts of the denominator.
    private var units = 0
    private var rest = 0

    /// - Parameters:
    ///   - numerator: Of the distance in units.
    ///   - denominator: Of the distance.
    init(numerator: Int, denominator: Int) {
        self.numerator = numerator
        self.denominator = denominator
    }

    /// The distance, rounded up.
    var distance: Int { (numerator + denominator - 1) / denominator }

    /// The next time, rounded up.
    var next: Int { units + (rest > 0 ? 1 : 0) }

    /// Moves to the next time. After a pause, the grid begins anew at `time`.
    mutating func advance(past time: Int, isFirst: Bool) {
        if isFirst || time - next >= distance { (units, rest) = (time, 0) }
        rest += numerator % denominator
        units += numerator / denominator + rest / denominator
        rest %= denominator
    }
}
