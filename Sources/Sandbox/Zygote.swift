internal import CLinux
internal import Glibc
package import SystemIO

/// The server's side of the zygote, the process that forks workers.
///
/// Thread-safe: jobs may be launched from any thread.
package final class Zygote: Sendable {
    private let control: SharedDescriptor
    /// The zygote's process.
    package let process: Int32

    private init(control: SharedDescriptor, process: Int32) {
        self.control = control
        self.process = process
    }

    /// Forks the zygote.
    ///
    /// To be called first of all, while the process has one thread: `fork` copies only the calling thread, and locks
    /// that others hold stay locked in the copy.
    package static func start() throws(SystemError) -> Zygote {
        var pair: [Int32] = [-1, -1]
        guard clinux_message_pair(&pair) == 0 else { throw SystemError.last("socketpair") }
        let process = clinux_fork()
        if process == 0 { ZygoteProcess.run(control: pair[1]) }
        let failure = SystemError.last("fork")
        close(pair[1])
        let control = SharedDescriptor(OwnedDescriptor(taking: pair[0]))
        guard process > 0 else { throw failure }
        return Zygote(control: control, process: process)
    }

    /// Has a worker forked for the job.
    ///
    /// - Parameters:
    ///   - input: The GIF; a sealed memfd or a file that nobody changes.
    ///   - output: An empty file open for reading and writing, open during the call.
    /// - Returns: The channel to the worker. It carries the worker's reply and then how it ended; closing it before
    ///   kills the worker.
    func launch(_ job: WorkerJob, input: SharedDescriptor, output: Int32) throws(SystemError) -> OwnedDescriptor {
        var pair: [Int32] = [-1, -1]
        guard clinux_message_pair(&pair) == 0 else { throw SystemError.last("socketpair") }
        let channel = OwnedDescriptor(taking: pair[0])
        defer { close(pair[1]) }
        try MessageChannel(socket: control.number).send(
            WorkerMessage(job), descriptors: [input.number, output, pair[1]])
        return channel
    }
}
