/// Adds up the delays of frames, in whole hundredths of a second.
package struct FrameClock: Sendable, Equatable {
    /// Units per second: those of GIF (GIF89a §23, «delay time»).
    package static let timescale = 100
    /// The shortest delay that browsers honour, in hundredths of a second.
    package static let shortestHonouredDelay = 2
    /// The delay that replaces a shorter one: Chromium, Firefox and Safari show a frame with a delay of 0 or 1 for a tenth of a
    /// second.
    package static let replacementDelay = 10

    /// The time at which the next frame appears.
    package private(set) var now = 0

    package init() {}

    /// The duration of a frame with the coded delay.
    package static func shownDelay(_ raw: Int) -> Int {
        raw < shortestHonouredDelay ? replacementDelay : raw
    }

    /// Advances the clock by a frame with the coded delay. Returns the time at which the frame appears, and its duration.
    package mutating func advance(by rawDelay: Int) -> (start: Int, duration: Int) {
        let duration = Self.shownDelay(rawDelay)
        defer { now += duration }
        return (now, duration)
    }
}
