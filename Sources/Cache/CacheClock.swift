internal import Glibc

/// The two clocks the cache reads, so that a test can set them.
package struct CacheClock: Sendable {
    /// Seconds since 1970 by the wall clock: what is written to disk and compared after a restart.
    package let unixSeconds: @Sendable () -> Int64
    /// Nanoseconds by a clock that never goes back: for what lives in memory only.
    package let monotonicNanoseconds: @Sendable () -> UInt64

    package init(
        unixSeconds: @escaping @Sendable () -> Int64, monotonicNanoseconds: @escaping @Sendable () -> UInt64
    ) {
        self.unixSeconds = unixSeconds
        self.monotonicNanoseconds = monotonicNanoseconds
    }

    /// The machine's clocks.
    package static let system = CacheClock(
        unixSeconds: { read(CLOCK_REALTIME).seconds },
        monotonicNanoseconds: {
            let now = read(CLOCK_MONOTONIC)
            return UInt64(now.seconds) * 1_000_000_000 + UInt64(now.nanoseconds)
        })

    private static func read(_ clock: clockid_t) -> (seconds: Int64, nanoseconds: Int64) {
        var now = timespec()
        // Cannot fail: both clocks always exist and the pointer is valid.
        clock_gettime(clock, &now)
        return (Int64(now.tv_sec), Int64(now.tv_nsec))
    }
}
