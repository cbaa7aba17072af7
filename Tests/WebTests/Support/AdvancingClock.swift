import Synchronization
import SystemIO

/// The system's clocks, as if more time had passed.
final class AdvancingClock: Sendable {
    private let advance = Mutex<Int64>(0)

    /// The seconds by which it is fast.
    var seconds: Int64 { advance.withLock { $0 } }

    var clock: TimeSource {
        TimeSource(
            unixNanoseconds: { [self] in TimeSource.system.unixNanoseconds() + seconds * 1_000_000_000 },
            monotonicNanoseconds: { [self] in TimeSource.system.monotonicNanoseconds() + UInt64(seconds) * 1_000_000_000 })
    }

    func pass(_ seconds: Int64) { advance.withLock { $0 += seconds } }
}

extension TimeSource {
    /// A clock that stands still, so that the seconds left of a lifetime do not change during a test.
    static var stopped: TimeSource {
        let (time, monotonic) = (TimeSource.system.unixNanoseconds(), TimeSource.system.monotonicNanoseconds())
        return TimeSource(unixNanoseconds: { time }, monotonicNanoseconds: { monotonic })
    }
}
