import Cache
import Synchronization

/// A clock that only ``advance(_:)`` moves.
final class ManualClock: Sendable {
    private let seconds: Atomic<Int64>

    init(_ seconds: Int64 = 1_700_000_000) {
        self.seconds = Atomic(seconds)
    }

    var now: Int64 { seconds.load(ordering: .relaxed) }

    func advance(_ amount: Int64) {
        seconds.add(amount, ordering: .relaxed)
    }

    var cacheClock: CacheClock {
        CacheClock(unixSeconds: { self.now }, monotonicNanoseconds: { UInt64(self.now) * 1_000_000_000 })
    }
}
