/// Adds up the delays of frames, in whole hundredths of a second.
package struct FrameClock: Sendable, Equatable {
    /// Units per second: those of GIF (GIF89a §23, «delay time»).
    package static let timescale = 100
    /// The shortest delay that browsers honour, in hundredths of a second.
    package static let shortestHonouredDelay = 2
    /// The delay that stands in for a shorter one: Chromium, Firefox and Safari read 0 and 1 as «as fast as possible» and show
    /// such a frame for a tenth of a second.
    package static let replacementDelay = 10

    /// When the next frame is shown.
    package private(set) var now = 0

    package init() {}

    /// How long a frame with the coded delay is shown.
    package static func shownDelay(_ raw: Int) -> Int {
        raw < shortestHonouredDelay ? replacementDelay : raw
    }

    /// Lets a frame with the coded delay pass. Returns when it is shown, and for how long.
    package mutating func advance(by rawDelay: Int) -> (start: Int, duration: Int) {
        let duration = Self.shownDelay(rawDelay)
        defer { now += duration }
        return (now, duration)
    }
}
