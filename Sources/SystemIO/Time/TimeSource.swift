internal import Glibc

/// The server's clocks and timers, which tests replace. Any thread.
///
/// ```swift
/// let time = TimeSource.system
/// let start = time.now
/// let timer = time.after(.seconds(5)) { cancel() }  // until `timer` is released
/// ```
package struct TimeSource: Sendable {
    /// Runs an action once after a delay, unless the result is released first.
    package typealias Timers = @Sendable (Duration, @escaping @Sendable () -> Void) -> any AnyObject & Sendable

    /// Nanoseconds since 1970 by the wall clock, which may be set.
    package let unixNanoseconds: @Sendable () -> Int64
    /// Nanoseconds of a monotonic clock that includes the time during which the machine is suspended.
    package let monotonicNanoseconds: @Sendable () -> UInt64
    private let timers: Timers
    private let start: (unixNanoseconds: Int64, monotonicNanoseconds: UInt64)

    /// - Parameter timers: Starts timers; the system's timers by default.
    package init(
        unixNanoseconds: @escaping @Sendable () -> Int64, monotonicNanoseconds: @escaping @Sendable () -> UInt64,
        timers: @escaping Timers = { Deadline(after: $0, $1) }
    ) {
        self.unixNanoseconds = unixNanoseconds
        self.monotonicNanoseconds = monotonicNanoseconds
        self.timers = timers
        start = (unixNanoseconds(), monotonicNanoseconds())
    }

    /// The system's clocks and timers.
    package static let system = TimeSource(
        unixNanoseconds: { read(CLOCK_REALTIME) }, monotonicNanoseconds: { UInt64(read(CLOCK_BOOTTIME)) })

    /// The monotonic clock's time since an arbitrary moment.
    package var now: Duration { .nanoseconds(Int64(monotonicNanoseconds())) }

    /// Seconds since 1970 by the wall clock.
    package var unixSeconds: Int64 { unixNanoseconds() / 1_000_000_000 }

    /// Milliseconds since 1970 by the wall clock.
    package var unixMilliseconds: Int64 { unixNanoseconds() / 1_000_000 }

    /// Seconds since 1970: the wall clock when this value was created, advanced by the monotonic clock. Setting the wall clock
    /// does not change ages measured by it. After a restart, a time stored on disk may be in the future.
    package var steadySeconds: Int64 {
        (start.unixNanoseconds + Int64(monotonicNanoseconds() &- start.monotonicNanoseconds)) / 1_000_000_000
    }

    /// Runs `action` once after `delay`, on a thread that `action` must not block. Releasing the result cancels the timer.
    package func after(_ delay: Duration, _ action: @escaping @Sendable () -> Void) -> any AnyObject & Sendable {
        timers(delay, action)
    }

    private static func read(_ clock: clockid_t) -> Int64 {
        var now = timespec()
        // Cannot fail: both clocks always exist and the pointer is valid.
        clock_gettime(clock, &now)
        return Int64(now.tv_sec) * 1_000_000_000 + Int64(now.tv_nsec)
    }
}
