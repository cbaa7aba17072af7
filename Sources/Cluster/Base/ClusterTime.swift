internal import Glibc
internal import SystemIO

/// The clock and the timers of the cluster's protocols. A test replaces them to choose the order of events.
package protocol ClusterTime: Sendable {
    /// The time since an arbitrary moment, by a clock that nothing sets back.
    var now: Duration { get }

    /// Milliseconds since 1970, for comparison with the clock of the server.
    var wallClock: Int64 { get }

    /// Runs `action` once after `delay`, on a thread that `action` must not block. Releasing the result cancels the timer.
    func after(_ delay: Duration, _ action: @escaping @Sendable () -> Void) -> any AnyObject & Sendable
}

/// The system's monotonic clock, and timers that cost nothing once they are released.
package struct SystemTime: ClusterTime {
    private static let start = ContinuousClock.now

    package init() {}

    package var now: Duration { ContinuousClock.now - Self.start }

    package var wallClock: Int64 {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        return Int64(now.tv_sec) * 1000 + Int64(now.tv_nsec) / 1_000_000
    }

    package func after(_ delay: Duration, _ action: @escaping @Sendable () -> Void) -> any AnyObject & Sendable {
        Deadline(after: delay, action)
    }
}

extension AsyncSignal {
    /// Waits as ``AsyncSignal/wait(for:start:)`` does, by the timers of `time`.
    func wait(for limit: Duration, _ time: any ClusterTime) async {
        await wait(for: limit) { time.after($0, $1) }
    }
}
