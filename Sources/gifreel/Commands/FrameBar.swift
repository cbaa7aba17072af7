internal import Media
internal import Prewarm
internal import Synchronization
internal import SystemIO

/// The progress of one conversion on a line of a terminal. It appears if the conversion takes longer than a second.
final class FrameBar: Sendable {
    private struct State {
        /// The first report, from which the rate counts: an encoder holds back the first frames.
        var first: (time: ContinuousClock.Instant, done: Int)?
        var isShown = false
    }

    /// The time before the bar appears.
    private static let patience: Duration = .seconds(1)

    private let began: ContinuousClock.Instant
    private let state = Mutex(State())

    init(since began: ContinuousClock.Instant = .now) {
        self.began = began
    }

    /// Draws the bar.
    func show(_ progress: FrameProgress) {
        if let text = drawing(progress, at: .now) { StandardError.write(text) }
    }

    /// Erases the bar.
    func erase() {
        if let text = erasure() { StandardError.write(text) }
    }

    /// The text that draws the bar; nil before the bar appears.
    func drawing(
        _ progress: FrameProgress, at now: ContinuousClock.Instant, columns: Int = StandardError.columns
    ) -> String? {
        state.withLock { state in
            let first = state.first ?? (now, progress.done)
            state.first = first
            guard began.duration(to: now) >= Self.patience else { return nil }
            state.isShown = true
            // The line replaces the previous one, unless it is longer than the terminal; EL (ECMA-48) erases the rest of the previous line.
            let line = Self.line(progress, since: first.done, elapsed: first.time.duration(to: now))
            return "\r\(line.prefix(columns - 1))\u{1B}[K"
        }
    }

    /// The text that erases the bar; nil if the bar is not shown.
    func erasure() -> String? {
        state.withLock { state in
            defer { state.isShown = false }
            return state.isShown ? "\r\u{1B}[K" : nil
        }
    }

    /// `███████░░░░░ 41/150`
    static func bar(_ done: Int, of total: Int) -> String {
        let width = 30
        let filled = done * width / max(1, total)
        return String(repeating: "█", count: filled) + String(repeating: "░", count: width - filled) + " \(done)/\(total)"
    }

    /// `███████░░░░░ 41/150 frames  0:03 left`
    ///
    /// - Parameters:
    ///   - first: Frames that were done when `elapsed` began.
    static func line(_ progress: FrameProgress, since first: Int, elapsed: Duration) -> String {
        let text = "\(bar(progress.done, of: progress.total)) frames"
        guard progress.done > first else { return text }
        let left = elapsed / .seconds(1) / Double(progress.done - first) * Double(progress.total - progress.done)
        return text + "  \(NumberText.clock(Int(left.rounded(.up)))) left"
    }
}
