package import Media
package import SystemIO

/// Why a worker did not make a rendition.
package enum SandboxError: Error, Sendable, Equatable {
    /// The worker says what is wrong with the GIF.
    case rejected(TranscodeError)
    /// The worker needed more time than a job may have.
    case timeout
    /// The worker crashed, was killed, or ended without a word.
    case crashed(WorkerExit)
    /// The worker said what no worker says.
    case misbehaved(Misbehaviour)
    /// The worker's file is not what it said.
    case invalidOutput(OutputFlaw)
    /// As many jobs as may wait are waiting.
    case queueFull
    /// Nobody waits for the job any more.
    case cancelled
    /// No worker can be had: the zygote is gone for good or a descriptor cannot be made.
    case unavailable(SystemError)

    /// How a worker broke the protocol, in which it sends one message without descriptors.
    package enum Misbehaviour: String, Sendable {
        case garbledMessage
        case surplusMessage
        case sentDescriptors
    }
}
