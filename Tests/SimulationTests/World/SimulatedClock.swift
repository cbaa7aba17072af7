import Synchronization
import SystemIO

/// The clocks of a node: the scheduler's time, and a wall clock that may be set.
final class SimulatedClock: Sendable {
    private let scheduler: SimulatedScheduler
    /// Seconds by which the wall clock was set forward.
    private let skew = Mutex<Int64>(0)

    init(_ scheduler: SimulatedScheduler) {
        self.scheduler = scheduler
    }

    var clock: TimeSource {
        TimeSource(
            unixNanoseconds: { [self] in
                1_700_000_000_000_000_000 + Int64(scheduler.now) + skew.withLock { $0 } * 1_000_000_000
            },
            monotonicNanoseconds: { [scheduler] in scheduler.now },
            timers: { [scheduler] in scheduler.startTimer(after: $0, $1) })
    }

    /// Sets the wall clock up to an hour back or forward.
    func jump() {
        let seconds: Int64 = scheduler.number(-3600...3600)
        skew.withLock { $0 += seconds }
    }
}
