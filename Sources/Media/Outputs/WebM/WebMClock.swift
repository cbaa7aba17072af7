/// Converts times of a timeline to ticks of a WebM file, which are whole numbers of nanoseconds (RFC 9559 §11.1).
struct WebMClock: Equatable {
    private static let nanosecond = 1_000_000_000
    /// The usual length of a tick, which suits all players.
    private static let longestTick = 1_000_000

    /// The length of a tick in nanoseconds.
    let scale: Int
    private let timescale: Int

    /// - Parameter timescale: Units per second of the timeline.
    ///
    /// Where a unit is a whole number of nanoseconds, so is every time, and the tick divides it. At some speeds, as 3, it is not: a
    /// tick is then one nanosecond, to which times are rounded.
    init(timescale: Int) {
        self.timescale = timescale
        let (unit, rest) = Self.nanosecond.quotientAndRemainder(dividingBy: timescale)
        scale = rest == 0 ? greatestCommonDivisor(unit, Self.longestTick) : 1
    }

    /// The nearest tick to a time.
    ///
    /// - Parameter time: In units, from 0 to the largest ``FactRange/duration``.
    func ticks(_ time: Int) -> Int {
        let (seconds, rest) = time.quotientAndRemainder(dividingBy: timescale)
        let (whole, overflow) = seconds.multipliedReportingOverflow(by: Self.nanosecond / scale)
        // No animation lasts that long, but a worker may claim it.
        guard !overflow, whole < 1 << 62 else { return 1 << 62 }
        return whole + (rest * (Self.nanosecond / scale) + timescale / 2) / timescale
    }
}
