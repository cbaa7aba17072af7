internal import CLinux

/// How the system schedules the loop's thread (sched(7)).
///
/// By default a thread that wakes up may take the processor from the one that runs, which is right for a request that comes
/// alone. Under load it is not: a client, or whatever else brings requests, is interrupted when it has sent one, and the loop
/// wakes up, reads and sleeps for each of them. A busy loop is SCHED_BATCH, waits until the processor is free, and finds all
/// that has come meanwhile.
extension EventLoop {
    /// Turns between two looks at how busy the loop is; deadlines are an occasion as well.
    static let turnsBetweenLooks: UInt64 = 256

    /// Looks at how busy the loop is, and has its thread scheduled accordingly. Where somebody else has chosen how
    /// (`CPUSchedulingPolicy=`), or where it is forbidden, nothing changes.
    func adaptScheduling() {
        // Both read now: the loop's clock stands where the turn began, and the turn's work would count as more than it is.
        let hasChanged = utilization.update(now: LoopClock.monotonic(), processorTime: clinux_thread_cpu_time())
        guard hasChanged, hasDefaultScheduling else { return }
        _ = clinux_use_batch_scheduling(utilization.isBusy ? 1 : 0)
    }
}
