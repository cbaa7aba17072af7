internal import Glibc
package import Media
package import SystemIO

/// The reason why a worker process did not produce a rendition.
package enum SandboxError: Error, Sendable, Equatable {
    // The source is at fault, or may be.

    /// The worker reported why it could not convert the source.
    case rejected(TranscodeError)
    /// The worker used up the CPU time of its job (`RLIMIT_CPU`).
    case cpuLimitExceeded
    /// The worker crashed (a bad access, a trap, a forbidden system call) or ended without a reply.
    case crashed(WorkerExit)
    /// The worker broke the protocol.
    case misbehaved(Misbehaviour)
    /// The worker's file differs from the worker's description of it.
    case invalidOutput(OutputFlaw)

    // The machine or the operator is at fault; the same job may succeed later.

    /// The worker did not end within the wall-clock limit of its job.
    case wallClockTimeout
    /// Another process or the kernel killed the worker, for instance because the machine ran out of memory.
    case killed(WorkerExit)
    /// The zygote did not report the worker's end in time and was replaced.
    case zygoteUnresponsive
    /// The queue is full.
    case queueFull
    /// The caller cancelled the job.
    case cancelled
    /// No worker can be started, or it could not set itself up.
    case unavailable(SystemError)

    /// The error of the output file, if the cause is its file system and not the job: the file system is full, over quota or
    /// read-only, or its disk fails. The same job may succeed with another file.
    package var fileSystemError: SystemError? {
        guard case .rejected(.failed(let stage, let code)) = self, [.openMuxer, .mux, .write].contains(stage),
            Self.fileSystemErrors.contains(-Int(code))
        else { return nil }
        return SystemError("write", code: -code)
    }

    private static let fileSystemErrors = [ENOSPC, EDQUOT, EIO, EROFS, ESTALE, ENOTCONN].map { Int($0) }

    /// A violation of the protocol. A worker may send only messages without descriptors: `begun` once, a limited number of
    /// progress reports, and then one reply.
    package enum Misbehaviour: String, Sendable {
        case garbledMessage
        case surplusMessage
        case sentDescriptors
    }
}
