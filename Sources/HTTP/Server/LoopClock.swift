internal import Glibc

/// A loop's time, read once per turn, and the `Date` field, encoded once per second.
final class LoopClock {
    /// The monotonic clock in nanoseconds.
    private(set) var now: UInt64 = 0
    /// Seconds since 1970.
    private(set) var unixTime = 0
    /// Milliseconds since 1970.
    private(set) var unixMilliseconds = 0
    /// The `Date: …` line with its CRLF (RFC 9110 section 6.6.1).
    private(set) var dateLine: [UInt8] = []

    init() {
        update()
    }

    func update() {
        now = Self.monotonic()
        var reading = timespec()
        clock_gettime(CLOCK_REALTIME, &reading)
        let seconds = reading.tv_sec
        unixMilliseconds = seconds * 1000 + reading.tv_nsec / 1_000_000
        guard seconds != unixTime else { return }
        unixTime = seconds
        dateLine = Array("Date: \(HTTPDate.format(seconds))\r\n".utf8)
    }

    /// Reads the monotonic clock, in nanoseconds.
    static func monotonic() -> UInt64 {
        var reading = timespec()
        clock_gettime(CLOCK_MONOTONIC, &reading)
        return UInt64(reading.tv_sec) * 1_000_000_000 + UInt64(reading.tv_nsec)
    }
}

extension Duration {
    /// The duration in nanoseconds: 0 if it is negative, and at most about 290 years.
    var nanoseconds: UInt64 {
        let (seconds, attoseconds) = components
        guard seconds >= 0, attoseconds >= 0 else { return 0 }
        let (scaled, overflowed) = UInt64(seconds).multipliedReportingOverflow(by: 1_000_000_000)
        return overflowed ? UInt64(Int64.max) : min(scaled, UInt64(Int64.max)) + UInt64(attoseconds / 1_000_000_000)
    }
}
