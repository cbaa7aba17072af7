internal import Glibc
internal import Media

/// The outcome of a job, for statistics.
package enum JobOutcome: String, Sendable, CaseIterable {
    /// The job produced its output.
    case finished
    /// The worker rejected the source.
    case rejected
    /// The worker reached its memory limit.
    case outOfMemory = "out_of_memory"
    /// The worker used up its CPU time.
    case cpuLimit = "cpu_limit"
    /// The worker did not end within its wall-clock limit.
    case wallClock = "wall_clock"
    /// The caller cancelled the job.
    case cancelled
    /// The worker made a system call that the filter forbids (SIGSYS).
    case forbiddenCall = "forbidden_call"
    /// The worker crashed: a bad access, a trap, an abort.
    case crash
    /// Another process or the kernel killed the worker.
    case killed
    /// The worker ended without a reply.
    case silent
    /// The worker broke the protocol, or its file differs from its description.
    case untrue
    /// No worker was available.
    case unavailable

    init(_ error: SandboxError) {
        self =
            switch error {
            case .rejected(.outOfMemory): .outOfMemory
            case .rejected: .rejected
            case .cpuLimitExceeded: .cpuLimit
            case .wallClockTimeout: .wallClock
            case .killed: .killed
            case .crashed(let exit): JobOutcome(exit)
            case .misbehaved, .invalidOutput: .untrue
            case .cancelled: .cancelled
            case .queueFull, .unavailable, .zygoteUnresponsive: .unavailable
            }
    }

    private init(_ exit: WorkerExit) {
        self =
            switch exit.signal {
            case nil: .silent
            case SIGSYS: .forbiddenCall
            default: .crash
            }
    }
}

/// Counts since the start of the process.
package struct SandboxStatistics: Sendable, Equatable {
    /// Jobs that had a worker, by outcome.
    package var jobs: [JobOutcome: Int] = [:]
    /// CPU time of all workers, in microseconds.
    package var cpuMicroseconds = 0
    /// The number of zygote replacements.
    package var replacedZygotes = 0
}
