/// The common time unit in which delays coded as fractions of a second are whole numbers.
struct DelayFractions: Sendable, Equatable {
    /// The finest unit, in units per second: microseconds. Delays that need a finer one are rounded.
    static let finest = 1_000_000

    /// Units per second: a multiple of ``FrameClock/timescale``.
    private(set) var timescale = FrameClock.timescale
    /// Whether some fraction needs a finer unit than microseconds, so that delays are rounded to microseconds.
    private(set) var isRounded = false
    /// The rounding error carried from earlier delays, in units.
    private var carried = 0.0

    /// Refines the unit so that a fraction is a whole number of units.
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

    /// Returns a fraction in units. If fractions are rounded, the error is carried into the next one: the sum is never off by
    /// more than half a unit.
    mutating func units(_ numerator: Int, _ denominator: Int) -> Int {
        if !isRounded { return numerator * timescale / denominator }
        let exact = Double(numerator) * Double(timescale) / Double(denominator) + carried
        let rounded = exact.rounded()
        carried = exact - rounded
        return max(0, Int(rounded))
    }
}
