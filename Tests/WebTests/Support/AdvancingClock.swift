import Cache
import Synchronization

/// The system's clocks, as if more time had passed.
final class AdvancingClock: Sendable {
    private let advance = Mutex<Int64>(0)

    /// The seconds by which it is fast.
    var seconds: Int64 { advance.withLock { $0 } }

    var clock: CacheClock {
        CacheClock(
            unixSeconds: { [self] in CacheClock.system.unixSeconds() + seconds },
            monotonicNanoseconds: { [self] in
                CacheClock.system.monotonicNanoseconds() + UInt64(seconds) * 1_000_000_000
            })
    }

    func pass(_ seconds: Int64) { advance.withLock { $0 += seconds } }
}

extension CacheClock {
    /// A clock that stands still, so that the seconds left of a lifetime do not change during a test.
    static var stopped: CacheClock {
        let (seconds, nanoseconds) = (CacheClock.system.unixSeconds(), CacheClock.system.monotonicNanoseconds())
        return CacheClock(unixSeconds: { seconds }, monotonicNanoseconds: { nanoseconds })
    }
}
