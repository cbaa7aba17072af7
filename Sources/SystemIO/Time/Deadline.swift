internal import Dispatch

/// A timer that runs an action once, unless it is released first.
///
/// Unlike this timer, a cancelled `Task.sleep` keeps its timer and about 500 bytes until the time has passed. A hundred
/// cancelled multi-minute timers per second would add up.
///
/// Any thread. Releasing the last reference cancels the timer without waiting for a running action.
package final class Deadline: Sendable {
    /// Any thread may use a Dispatch source, although its protocol is not `Sendable`.
    private nonisolated(unsafe) let timer: any DispatchSourceTimer

    /// All actions share one queue, because they are short.
    private static let queue = DispatchQueue(label: "deadlines")

    /// - Parameters:
    ///   - delay: The minimum delay by the monotonic clock.
    ///   - action: Runs once, on a system thread; must not block. Released after it has run or was cancelled.
    package init(after delay: Duration, _ action: @escaping @Sendable () -> Void) {
        timer = DispatchSource.makeTimerSource(queue: Self.queue)
        // The nanoseconds of a century do not overflow Int.
        let (seconds, attoseconds) = min(delay, .seconds(100 * 366 * 86_400)).components
        let nanoseconds = Int(seconds) * 1_000_000_000 + Int(attoseconds / 1_000_000_000)
        timer.setEventHandler(handler: action)
        timer.schedule(deadline: .now() + .nanoseconds(nanoseconds), leeway: .milliseconds(1))
        timer.activate()
    }

    deinit {
        timer.cancel()
    }
}
