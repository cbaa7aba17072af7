/// Maps the times of frames to times of a video by the requested part, speed and maximum frame rate.
///
/// The video's time unit makes every frame's time a whole number: at speed p/q, in lowest terms, a second has 100·p units and a
/// hundredth of the source's time takes q.
struct Timeline: Sendable, Equatable {
    /// Units after which an unchanged picture becomes another sample.
    ///
    /// MP4 has 32 bits for the duration of a sample and for the distance between its decoding and its composition time
    /// (ISO/IEC 14496-12 §8.6.1), and libavformat takes 31. A frame lasts at most 65,535 · 1000 units, so no sample lasts
    /// 2²⁸, and no sample is shown 2³⁰ units before or after it is decoded: x264 reorders by at most three samples here.
    static let longestSample = 1 << 27

    /// Units per second.
    let timescale: Int
    private let unitsPerHundredth: Int
    /// Hundredths of a second of the GIF's time.
    private let start: Int
    private let end: Int
    /// Thousandths of frames per second.
    private let ceiling: Int?
    /// The time of the previous sample, in units.
    private var newest: Int?

    init(_ options: TimeOptions) {
        let divisor = Self.greatestCommonDivisor(options.speed, TimeOptions.thousand)
        timescale = FrameClock.timescale * (options.speed / divisor)
        unitsPerHundredth = TimeOptions.thousand / divisor
        start = options.start
        end = options.end ?? .max
        ceiling = options.ceiling
    }

    /// The video's time, in units, for a frame that the source shows at `time` for `duration`, both in hundredths. Nil if the
    /// frame lies outside the requested part.
    func place(time: Int, duration: Int) -> Int? {
        let first = max(time, start)
        guard first < min(time + duration, end) else { return nil }
        return (first - start) * unitsPerHundredth
    }

    /// Whether the frame rate limit allows a sample at `time`. Otherwise the frame is dropped, and the previous sample lasts longer.
    func admits(_ time: Int) -> Bool {
        guard let ceiling, let newest else { return true }
        return (time - newest) * ceiling >= timescale * TimeOptions.thousand
    }

    /// Whether a frame at `time` must become a sample although it looks like the previous one.
    func isOverdue(_ time: Int) -> Bool {
        guard let newest else { return false }
        return time - newest >= Self.longestSample
    }

    /// Records that a frame has become a sample.
    mutating func note(_ time: Int) { newest = time }

    /// Whether the requested part ends at or before `time`, in hundredths.
    func isOver(at time: Int) -> Bool { time >= end }

    /// The length of the video, in units, for a source of this duration in hundredths. At most 0 if the source ends before the
    /// requested part begins.
    func length(of duration: Int) -> Int { (min(duration, end) - start) * unitsPerHundredth }

    /// The shortest duration of a sample, in units, for a shortest frame of this many hundredths.
    func shortestSample(_ shortest: Int) -> Int {
        let unbounded = shortest * unitsPerHundredth
        guard let ceiling else { return unbounded }
        return max(unbounded, timescale * TimeOptions.thousand / ceiling)
    }

    private static func greatestCommonDivisor(_ first: Int, _ second: Int) -> Int {
        second == 0 ? first : greatestCommonDivisor(second, first % second)
    }
}
