package import SystemIO

extension TimeSource {
    /// A wall clock and a monotonic clock that a test sets, with the timers of the system.
    package init(
        unixSeconds: @escaping @Sendable () -> Int64, monotonicNanoseconds: @escaping @Sendable () -> UInt64 = { 0 }
    ) {
        self.init(unixNanoseconds: { unixSeconds() * 1_000_000_000 }, monotonicNanoseconds: monotonicNanoseconds)
    }

    /// The wall clock and the timers of the system, with a monotonic clock that a test sets.
    package init(now: @escaping @Sendable () -> Duration) {
        self.init(
            unixNanoseconds: TimeSource.system.unixNanoseconds, monotonicNanoseconds: { UInt64(now() / .nanoseconds(1)) })
    }
}
