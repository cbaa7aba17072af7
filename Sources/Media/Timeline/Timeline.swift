/// Where the frames of a GIF come to lie in a video: which part of its time, how fast, and how many at most.
///
/// A unit of the video's time is such that every frame's time is a whole number: at speed p/q, in lowest terms, a second
/// has 100·p of them and a hundredth of the GIF's time takes q.
struct Timeline: Sendable, Equatable {
    /// Units after which a picture becomes a sample again though it has not changed.
    ///
    /// MP4 has 32 bits for the duration of a sample and for the distance between its decoding and its composition time
    /// (ISO/IEC 14496-12 §8.6.1), and libavformat takes 31. A frame lasts at most 65,535 · 1000 units, so no sample lasts
    /// 2²⁸, and no sample is shown 2³⁰ units before or after it is decoded: x264 reorders by at most three samples here.
    static let longestSample = 1 << 27

    /// Units a second.
    let timescale: Int
    private let unitsPerHundredth: Int
    /// Hundredths of a second of the GIF's time.
    private let start: Int
    private let end: Int
    /// Thousandths of frames a second.
    private let ceiling: Int?
    /// The time of the sample before, in units.
    private var newest: Int?

    init(_ options: TimeOptions) {
        let divisor = Self.greatestCommonDivisor(options.speed, TimeOptions.thousand)
        timescale = FrameClock.timescale * (options.speed / divisor)
        unitsPerHundredth = TimeOptions.thousand / divisor
        start = options.start
        end = options.end ?? .max
        ceiling = options.ceiling
    }

    /// When the video shows a frame that the GIF shows from `time` on for `duration`, both in hundredths; nil where all of
    /// that lies outside the part that is wanted.
    func place(time: Int, duration: Int) -> Int? {
        let first = max(time, start)
        guard first < min(time + duration, end) else { return nil }
        return (first - start) * unitsPerHundredth
    }

    /// Whether a frame shown then comes late enough after the sample before to become one. One that does not is dropped, and
    /// that sample lasts longer.
    func admits(_ time: Int) -> Bool {
        guard let ceiling, let newest else { return true }
        return (time - newest) * ceiling >= timescale * TimeOptions.thousand
    }

    /// Whether a frame shown then must become a sample though it looks like the one before.
    func isOverdue(_ time: Int) -> Bool {
        guard let newest else { return false }
        return time - newest >= Self.longestSample
    }

    /// Notes that a frame has become a sample.
    mutating func note(_ time: Int) { newest = time }

    /// Whether nothing of the GIF is wanted from `time` on, in hundredths.
    func isOver(at time: Int) -> Bool { time >= end }

    /// The video's length, in units, of a GIF that lasts so many hundredths; not above 0 where it ends before the wanted
    /// part begins.
    func length(of duration: Int) -> Int { (min(duration, end) - start) * unitsPerHundredth }

    /// The least time that a sample lasts, in units, where the shortest frame lasts so many hundredths.
    func shortestSample(_ shortest: Int) -> Int {
        let unbounded = shortest * unitsPerHundredth
        guard let ceiling else { return unbounded }
        return max(unbounded, timescale * TimeOptions.thousand / ceiling)
    }

    private static func greatestCommonDivisor(_ first: Int, _ second: Int) -> Int {
        second == 0 ? first : greatestCommonDivisor(second, first % second)
    }
}
