internal import CLinux
internal import Glibc

/// A loop's time, read once per turn, and the `Date` field, encoded once per second.
final class LoopClock {
    /// The monotonic clock in nanoseconds.
    private(set) var now: UInt64 = 0
    /// Seconds since 1970.
    private(set) var unixTime = 0
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
