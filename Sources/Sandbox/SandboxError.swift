package import Media
package import SystemIO

/// The reason why a worker process did not produce a rendition.
package enum SandboxError: Error, Sendable, Equatable {
    // The source is at fault, or may be.

    /// The worker reports what is wrong with the GIF.
    case rejected(TranscodeError)
    /// The worker used up the processor time of its job (`RLIMIT_CPU`).
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

    /// A violation of the protocol. A worker may send only messages without descriptors: as many reports of progress as its time
    /// allows, and then one reply.
    package enum Misbehaviour: String, Sendable {
        case garbledMessage
        case surplusMessage
        case sentDescriptors
    }
}
