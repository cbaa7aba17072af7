internal import CLinux
internal import Glibc

/// Adapts the scheduling policy of a loop's thread to its load (sched(7)).
///
/// By default, a thread that wakes up may preempt the running one, which is right for a single request. Under load, a client or
/// any other source of requests is preempted after each request it sends, and the loop wakes up, reads and sleeps for each
/// request. A busy loop therefore runs as SCHED_BATCH: it waits until the processor is free, and then finds all requests that
/// have arrived in the meantime.
struct ThreadScheduling {
    /// Turns of the loop between updates; expired deadlines also cause updates.
    static let turnsBetweenUpdates: UInt64 = 256

    private var utilization: LoopUtilization
    /// False if an administrator has chosen the policy (`CPUSchedulingPolicy=`), which then stays unchanged.
    private let isDefault: Bool

    /// Reads the scheduling of the calling thread.
    init() {
        isDefault = sched_getscheduler(0) == SCHED_OTHER
        utilization = LoopUtilization(now: LoopClock.monotonic(), processorTime: clinux_thread_cpu_time())
    }

    /// Whether the thread was busy at the last update.
    var isBusy: Bool { utilization.isBusy }

    /// Measures the load and sets the policy. If the system forbids this, the policy stays unchanged.
    mutating func update() {
        // Reads both clocks now: the loop's clock was read at the start of the turn, so the turn's work would count twice.
        let hasChanged = utilization.update(now: LoopClock.monotonic(), processorTime: clinux_thread_cpu_time())
        guard hasChanged, isDefault else { return }
        _ = clinux_use_batch_scheduling(utilization.isBusy ? 1 : 0)
    }
}

/// Decides whether a loop is busy: it becomes busy when its thread uses more than a fifth of a processor between updates, and
/// stays busy above a tenth.
///
/// Reads no clock itself, so that tests can choose the times. Clock and processor time are in nanoseconds.
struct LoopUtilization {
    /// The processor shares at which a loop becomes busy, and below which it stops being busy.
    static let busy = 0.2
    static let calm = 0.1
    /// Shorter periods are too noisy to measure.
    static let shortestPeriod: UInt64 = 20_000_000

    private(set) var isBusy = false
    private var start: UInt64
    private var processorTimeAtStart: UInt64

    init(now: UInt64, processorTime: UInt64) {
        start = now
        processorTimeAtStart = processorTime
    }

    /// Measures the period since the last update. Returns whether ``isBusy`` has changed.
    mutating func update(now: UInt64, processorTime: UInt64) -> Bool {
        guard now >= start, now - start >= Self.shortestPeriod else { return false }
        let share = Double(processorTime &- processorTimeAtStart) / Double(now - start)
        (start, processorTimeAtStart) = (now, processorTime)
        let wasBusy = isBusy
        isBusy = share >= (wasBusy ? Self.calm : Self.busy)
        return isBusy != wasBusy
    }
}
