internal import Dispatch

/// Something that is done at a moment to come, unless whoever wanted it lets go of this before.
///
/// A task that sleeps would do as well, but for one thing: called off, Swift's `Task.sleep` keeps its timer and some 500 bytes
/// until the moment comes. Of deadlines of minutes, called off a hundred times a second, that adds up.
///
/// Any thread. Letting go of the last reference calls it off; what is being done at that very moment is not waited for.
package final class Deadline: Sendable {
    /// Dispatch sources may be used by any thread; the protocol does not say so in types.
    private nonisolated(unsafe) let timer: any DispatchSourceTimer

    /// One queue for all, since what is done at a deadline is short.
    private static let queue = DispatchQueue(label: "deadlines")

    /// - Parameters:
    ///   - delay: By the monotonic clock, from now; never done before.
    ///   - action: Done once, on a thread of the system's; must not block. Let go of when it was done or called off.
    package init(after delay: Duration, _ action: @escaping @Sendable () -> Void) {
        timer = DispatchSource.makeTimerSource(queue: Self.queue)
        // A century is as good as for ever, and its nanoseconds are a number.
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
