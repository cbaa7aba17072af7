/// Turns a GIF's delays into time, in whole hundredths of a second all the way.
package struct FrameClock: Sendable, Equatable {
    /// Units a second: GIF's own (GIF89a §23, «delay time»).
    package static let timescale = 100

    /// When the next frame is shown.
    package private(set) var now = 0

    package init() {}

    /// What a coded delay lasts.
    package static func shownDelay(_ raw: Int) -> Int {
        raw < GIFQuirks.shortestHonouredDelay ? GIFQuirks.replacementDelay : raw
    }

    /// Lets a frame with the coded delay pass, and returns when it is shown and for how long.
    package mutating func advance(by rawDelay: Int) -> (start: Int, duration: Int) {
        let duration = Self.shownDelay(rawDelay)
        defer { now += duration }
        return (now, duration)
    }
}
