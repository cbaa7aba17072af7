/// Converts times of a timeline to ticks of a WebM file, which are whole numbers of nanoseconds (RFC 9559 §11.1).
struct WebMClock: Equatable {
    private static let nanosecond = 1_000_000_000
    /// Ticks of up to a millisecond suit all players. With the shortest, a cluster holds three seconds.
    private static let lengths = 100_000...1_000_000
    /// The number of divisors to try, from the smallest.
    private static let attempts = 64

    /// The length of a tick in nanoseconds.
    let scale: Int
    private let timescale: Int

    /// - Parameter timescale: Units per second of the timeline.
    /// - Returns: Nil for a tick that ``WebMWriter`` does not choose.
    init?(timescale: Int, scale: Int) {
        guard Self.lengths.contains(scale) else { return nil }
        (self.timescale, self.scale) = (timescale, scale)
    }

    /// Chooses a tick for the times of a file, in units of the timeline: one that divides all of them, exactly or to within a
    /// few nanoseconds. Equal distances are then equal in ticks. If such ticks are too short, times are rounded to the shortest
    /// tick.
    init(timescale: Int, times: [Int]) {
        self.timescale = timescale
        scale = Self.tick(dividing: times.reduce(0, greatestCommonDivisor), timescale)
    }

    private static func tick(dividing distance: Int, _ timescale: Int) -> Int {
        let (product, overflow) = distance.multipliedReportingOverflow(by: nanosecond)
        guard distance > 0, !overflow, product < 1 << 61 else { return lengths.upperBound }
        let longest = lengths.upperBound * timescale
        let fewest = (product + longest - 1) / longest
        var best: (tick: Int, excess: Int)?
        for divisor in (fewest..<fewest + attempts).lazy.map({ $0 * timescale }) {
            // Rounded up, so that no picture rate exceeds a level of the codec.
            let tick = (product + divisor - 1) / divisor
            guard lengths.contains(tick) else { break }
            let excess = tick * divisor - product
            if excess < best?.excess ?? .max { best = (tick, excess) }
            if excess == 0 { break }
        }
        return best?.tick ?? lengths.lowerBound
    }

    /// Returns the tick nearest to a time.
    ///
    /// - Parameter time: In units, from 0 to the largest ``FactRange/duration``.
    func ticks(_ time: Int) -> Int {
        let (seconds, rest) = time.quotientAndRemainder(dividingBy: timescale)
        let (whole, overflow) = seconds.multipliedReportingOverflow(by: Self.nanosecond)
        // No animation lasts that long, but a worker may claim it.
        guard !overflow, whole < 1 << 61 else { return 1 << 61 }
        return (whole + (rest * Self.nanosecond + timescale / 2) / timescale + scale / 2) / scale
    }
}
