/// Adds up the delays of frames, in whole units of a source's timescale.
package struct FrameClock: Sendable, Equatable {
    /// Units per second of GIF (GIF89a §23, delay time), and of the times in options and limits.
    package static let timescale = 100
    /// The shortest delay that browsers honour, in milliseconds: they read whole milliseconds, and ignore delays of up to 10.
    private static let shortestMilliseconds = 11
    /// The delay that replaces a shorter one, as a fraction of a second. Chromium, Firefox and Safari show such a frame for a
    /// tenth of a second.
    private static let replacementFraction = 10

    /// Units per second.
    private let timescale: Int
    private let replacesShortDelays: Bool
    /// The time at which the next frame appears.
    package private(set) var now = 0

    /// - Parameters:
    ///   - timescale: Units per second: a multiple of ``timescale``.
    ///   - replacesShortDelays: Whether delays that browsers ignore are replaced.
    package init(timescale: Int = Self.timescale, replacesShortDelays: Bool = true) {
        self.timescale = timescale
        self.replacesShortDelays = replacesShortDelays
    }

    /// The shortest delay that browsers honour, in units.
    static func shortestDelay(timescale: Int) -> Int { (shortestMilliseconds * timescale + 999) / 1000 }

    /// The duration of a frame with the coded delay.
    package static func shownDelay(_ raw: Int, timescale: Int = Self.timescale) -> Int {
        raw < shortestDelay(timescale: timescale) ? timescale / replacementFraction : raw
    }

    /// Advances the clock by a frame with the coded delay. Returns the time at which the frame appears, and its duration.
    package mutating func advance(by rawDelay: Int) -> (start: Int, duration: Int) {
        let duration = replacesShortDelays ? Self.shownDelay(rawDelay, timescale: timescale) : rawDelay
        defer { now += duration }
        return (now, duration)
    }
}

/// The greatest common divisor of two numbers that are not negative, by Euclid's algorithm; the other number if one is 0.
func greatestCommonDivisor(_ first: Int, _ second: Int) -> Int {
    second == 0 ? first : greatestCommonDivisor(second, first % second)
}
