internal import CLinux
internal import Glibc
internal import Synchronization
package import SystemIO

/// The server's side of the zygote, the process that forks workers. One that has died is replaced.
///
/// Thread-safe: jobs may be launched from any thread.
package final class Zygote: Sendable {
    /// The hidden command by which the executable becomes a zygote; its control socket is descriptor 3.
    package static let command = "zygote"

    private struct Running {
        var control: SharedDescriptor
        var process: Int32
    }

    private let executable: String
    private let running: Mutex<Running>

    private init(_ running: Running, executable: String) {
        self.running = Mutex(running)
        self.executable = executable
    }

    /// The zygote's process now.
    package var process: Int32 { running.withLock { $0.process } }

    /// Forks the zygote from this process, which takes less than a millisecond.
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
        return Zygote(Running(control: control, process: process), executable: "/proc/self/exe")
    }

    /// Starts the executable anew as a zygote, which a process with threads may do. It loads the libraries once more
    /// (20–50 ms).
    ///
    /// - Parameter executable: The path of `gifreel`.
    package static func spawn(executable: String) throws(SystemError) -> Zygote {
        Zygote(try spawned(executable), executable: executable)
    }

    /// Ends the process when it is asked to be a zygote; called by the hidden command.
    package static func serve() -> Never {
        ZygoteProcess.run(control: 3)
    }

    private static func spawned(_ executable: String) throws(SystemError) -> Running {
        var pair: [Int32] = [-1, -1]
        guard clinux_message_pair(&pair) == 0 else { throw SystemError.last("socketpair") }
        let control = SharedDescriptor(OwnedDescriptor(taking: pair[0]))
        defer { close(pair[1]) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, pair[1], 3)
        var process: pid_t = 0
        var arguments = [strdup("gifreel"), strdup(command), nil]
        defer { for argument in arguments { free(argument) } }
        let code = posix_spawn(&process, executable, &actions, nil, &arguments, environ)
        guard code == 0 else { throw SystemError("posix_spawn", code: code) }
        return Running(control: control, process: process)
    }

    /// Ends the zygote and waits until it is gone; then the time that it and its workers took counts as this process'
    /// children's. No job may be launched afterwards. Blocks for a millisecond or so.
    package func stop() {
        running.withLock { running in
            shutdown(running.control.number, Int32(SHUT_RDWR))
            while waitpid(running.process, nil, 0) < 0 && errno == EINTR {}
        }
    }

    /// Has a worker forked for the job.
    ///
    /// - Parameters:
    ///   - input: The GIF; a sealed memfd or a file that nobody changes.
    ///   - output: An empty file open for reading and writing, written by position.
    /// - Returns: The channel to the worker. It carries the worker's reply and then how it ended; closing it before
    ///   kills the worker.
    func launch(_ job: WorkerJob, input: SharedDescriptor, output: SharedDescriptor) throws(SystemError) -> OwnedDescriptor {
        var pair: [Int32] = [-1, -1]
        guard clinux_message_pair(&pair) == 0 else { throw SystemError.last("socketpair") }
        let channel = OwnedDescriptor(taking: pair[0])
        defer { close(pair[1]) }
        let descriptors = [input.number, output.number, pair[1]]
        let control = running.withLock { $0.control }
        do throws(SystemError) {
            try MessageChannel(socket: control.number).send(WorkerMessage(job), descriptors: descriptors)
        } catch {
            guard error.code == EPIPE || error.code == ECONNRESET || error.code == ENOTCONN else { throw error }
            let fresh = try replacement(for: control)
            try MessageChannel(socket: fresh.number).send(WorkerMessage(job), descriptors: descriptors)
        }
        return channel
    }

    /// Another zygote in place of the one behind `dead`, which the first of several callers starts.
    private func replacement(for dead: SharedDescriptor) throws(SystemError) -> SharedDescriptor {
        let outcome: Result<SharedDescriptor, SystemError> = running.withLock { running in
            if running.control !== dead { return .success(running.control) }
            // A child of ours that hangs up is about to end, but its sockets close before it can be waited for. Killed, it
            // ends at once, and its entry in the process table goes.
            kill(running.process, SIGKILL)
            while waitpid(running.process, nil, 0) < 0 && errno == EINTR {}
            do throws(SystemError) {
                running = try Self.spawned(executable)
                return .success(running.control)
            } catch {
                return .failure(error)
            }
        }
        return try outcome.get()
    }
}
