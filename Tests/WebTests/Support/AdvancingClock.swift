import Cache
import Synchronization

/// The system's clock, which a test sets forward.
final class AdvancingClock: Sendable {
    private let advance = Mutex<Int64>(0)

    /// The seconds by which it is fast.
    var seconds: Int64 { advance.withLock { $0 } }

    var clock: CacheClock {
        CacheClock(
            unixSeconds: { [self] in CacheClock.system.unixSeconds() + seconds },
            monotonicNanoseconds: CacheClock.system.monotonicNanoseconds)
    }

    func pass(_ seconds: Int64) { advance.withLock { $0 += seconds } }
}
