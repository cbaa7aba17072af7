internal import Glibc
internal import Media

/// What became of a job that had a worker, for statistics. The raw value is a label's value.
package enum JobFate: String, Sendable, CaseIterable {
    /// It made what it was to make.
    case finished
    /// The GIF was at fault, and the worker said so.
    case rejected
    /// The GIF needed more memory than a job may have, and the worker said so.
    case outOfMemory = "out_of_memory"
    /// The worker used up its processor time.
    case cpuLimit = "cpu_limit"
    /// The worker did not end within its wall-clock limit.
    case wallClock = "wall_clock"
    /// Nobody waited for it any more.
    case cancelled
    /// The worker tried a system call that it has no business with (SIGSYS).
    case forbiddenCall = "forbidden_call"
    /// The worker crashed: a bad access, a trap, an abort.
    case crash
    /// Somebody else killed the worker, such as the kernel when memory ran out.
    case killed
    /// The worker ended without an answer.
    case silent
    /// The worker broke the protocol, or its file was not what it said.
    case untrue
    /// There was no worker to be had.
    case unavailable

    init(_ error: SandboxError) {
        self =
            switch error {
            case .rejected(.outOfMemory): .outOfMemory
            case .rejected: .rejected
            case .cpuLimitExceeded: .cpuLimit
            case .wallClockTimeout: .wallClock
            case .killed: .killed
            case .crashed(let exit): JobFate(exit)
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
