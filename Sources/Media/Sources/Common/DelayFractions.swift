/// The unit in which delays that are coded as fractions of a second are whole numbers.
struct DelayFractions: Sendable, Equatable {
    /// The most units per second: microseconds. With more, delays are rounded.
    static let finest = 1_000_000

    /// Units per second: a multiple of ``FrameClock/timescale``.
    private(set) var timescale = FrameClock.timescale
    /// Whether a fraction had no whole number of units below the finest, so that delays are rounded to microseconds.
    private(set) var isRounded = false
    /// The rounding error carried from earlier delays, in units.
    private var carried = 0.0

    /// Makes room for a fraction.
    ///
    /// - Parameters:
    ///   - numerator: At least 0.
    ///   - denominator: At least 1.
    mutating func add(_ numerator: Int, _ denominator: Int) {
        if isRounded { return }
        let reduced = denominator / greatestCommonDivisor(numerator, denominator)
        let multiple = timescale / greatestCommonDivisor(timescale, reduced) * reduced
        if multiple > Self.finest {
            timescale = Self.finest
            isRounded = true
        } else {
            timescale = multiple
        }
    }

    /// A fraction in units. If fractions are rounded, the next one makes up for what this one loses: the sum of all is never off by more
    /// than half a unit.
    mutating func units(_ numerator: Int, _ denominator: Int) -> Int {
        if !isRounded { return numerator * timescale / denominator }
        let exact = Double(numerator) * Double(timescale) / Double(denominator) + carried
        let rounded = exact.rounded()
        carried = exact - rounded
        return max(0, Int(rounded))
    }
}
