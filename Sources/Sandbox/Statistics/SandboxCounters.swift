internal import Synchronization

/// Counts what becomes of jobs. Thread-safe.
package final class SandboxCounters: Sendable {
    private let state = Mutex(SandboxStatistics())

    package init() {}

    /// The counts so far.
    package var statistics: SandboxStatistics { state.withLock { $0 } }

    func count(_ fate: JobFate) {
        state.withLock { $0.jobs[fate, default: 0] += 1 }
    }

    func add(cpuMicroseconds: Int) {
        state.withLock { $0.cpuMicroseconds += cpuMicroseconds }
    }
}
