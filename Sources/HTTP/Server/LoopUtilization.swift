/// Whether a loop is busy: whether its thread has taken more than a fifth of a processor since it was last asked, and since
/// then more than a tenth.
///
/// A value, so that it can be tested without a thread; the clock and the processor time come from outside, in nanoseconds.
struct LoopUtilization {
    /// The share of a processor from which on a loop is busy, and the one below which it is no longer.
    static let busy = 0.2
    static let calm = 0.1
    /// What is shorter says nothing.
    static let shortestPeriod: UInt64 = 20_000_000

    private(set) var isBusy = false
    private var start: UInt64
    private var processorTimeAtStart: UInt64

    init(now: UInt64, processorTime: UInt64) {
        start = now
        processorTimeAtStart = processorTime
    }

    /// Looks at the time since the last look. Returns whether ``isBusy`` is another now.
    mutating func update(now: UInt64, processorTime: UInt64) -> Bool {
        guard now >= start, now - start >= Self.shortestPeriod else { return false }
        let share = Double(processorTime &- processorTimeAtStart) / Double(now - start)
        (start, processorTimeAtStart) = (now, processorTime)
        let wasBusy = isBusy
        isBusy = share >= (wasBusy ? Self.calm : Self.busy)
        return isBusy != wasBusy
    }
}
