package import Media
package import SystemIO

/// Why a worker did not make a rendition.
package enum SandboxError: Error, Sendable, Equatable {
    /// The worker says what is wrong with the GIF.
    case rejected(TranscodeError)
    /// The worker needed more time than a job may have.
    case timeout
    /// The worker crashed, was killed, or said nothing sensible.
    case crashed(WorkerExit?)
    /// As many jobs as may wait are waiting.
    case queueFull
    /// Nobody waits for the job any more; it was not begun.
    case cancelled
    /// The worker's file is not what it said.
    case invalidOutput
    /// No worker can be had: the zygote is gone or a descriptor cannot be made.
    case unavailable(SystemError)
}
