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
        /// What holds in it, once it has said so.
        var confinement: Confinement?
        var replacements = 0
    }

    /// A worker that has been asked for.
    struct Launched {
        /// Over which the worker replies.
        let channel: SharedDescriptor
        /// Over which the zygote tells how the worker ended; closing it, or its sending half, kills the worker.
        let guardian: SharedDescriptor
        /// The zygote that has it.
        let control: SharedDescriptor
    }

    /// The one variable that a spawned zygote gets: what the loader needs, and no secrets.
    private static let inherited = "LD_LIBRARY_PATH"
    /// How long a zygote may take to be ready, in milliseconds.
    private static let patience: Int32 = 20_000

    private let executable: String
    private let running: Mutex<Running>

    private init(_ running: Running, executable: String) {
        self.running = Mutex(running)
        self.executable = executable
    }

    /// The zygote's process now.
    package var process: Int32 { running.withLock { $0.process } }

    /// How often a zygote was started in place of another.
    package var replacements: Int { running.withLock { $0.replacements } }

    /// Forks the zygote from this process, which takes less than a millisecond.
    ///
    /// To be called first of all, while the process has one thread: `fork` copies only the calling thread, and locks
    /// that others hold stay locked in the copy. What this process has in memory, its workers have too.
    ///
    /// - Parameter warmsUp: Does one conversion first, which pays where many follow.
    package static func fork(warmsUp: Bool) throws(SystemError) -> Zygote {
        var pair: [Int32] = [-1, -1]
        guard clinux_message_pair(&pair) == 0 else { throw SystemError.last("socketpair") }
        let process = clinux_fork()
        if process == 0 { ZygoteProcess.run(control: pair[1], warmsUp: warmsUp) }
        let failure = SystemError.last("fork")
        close(pair[1])
        let control = SharedDescriptor(OwnedDescriptor(taking: pair[0]))
        guard process > 0 else { throw failure }
        return Zygote(Running(control: control, process: process), executable: "/proc/self/exe")
    }

    /// Starts the executable anew as a zygote, which a process with threads may do. Returns at once; until the
    /// libraries are loaded and warm (20–50 ms), jobs wait.
    ///
    /// Such a zygote knows nothing of this process: neither its settings nor its secrets nor where its code lies.
    ///
    /// - Parameter executable: The path of `gifreel`.
    package static func spawn(executable: String = "/proc/self/exe") throws(SystemError) -> Zygote {
        Zygote(try spawned(executable), executable: executable)
    }

    /// Ends the process when it is asked to be a zygote; called by the hidden command.
    package static func serve() -> Never {
        ZygoteProcess.run(control: 3, warmsUp: true)
    }

    /// What of the kernel's confinement holds; waits until the zygote is ready. Nil where it does not become so.
    package func confinement() -> Confinement? {
        let (known, control) = running.withLock { ($0.confinement, $0.control) }
        if let known { return known }
        var polled = pollfd(fd: control.number, events: Int16(POLLIN), revents: 0)
        guard poll(&polled, 1, Self.patience) == 1,
            let said = try? MessageChannel(socket: control.number).receive()?.message?.confinement
        else { return nil }
        running.withLock { if $0.control === control { $0.confinement = said } }
        return said
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
        var environment = [getenv(inherited).flatMap { strdup("\(inherited)=" + String(cString: $0)) }, nil]
        defer { for text in arguments + environment { free(text) } }
        let code = posix_spawn(&process, executable, &actions, nil, &arguments, &environment)
        guard code == 0 else { throw SystemError("posix_spawn", code: code) }
        return Running(control: control, process: process)
    }

    /// Ends the zygote and waits until it is gone; then the time that it and its workers took counts as this process'
    /// children's. No job may be launched afterwards. Blocks for a millisecond or so.
    package func stop() {
        running.withLock { running in
            guard running.process > 0 else { return }
            shutdown(running.control.number, Int32(SHUT_RDWR))
            Self.reap(&running)
        }
    }

    /// Waits for the process' end. Afterwards it is nobody's number any more, or somebody else's.
    private static func reap(_ running: inout Running) {
        while waitpid(running.process, nil, 0) < 0 && errno == EINTR {}
        running.process = -1
    }

    /// Has a worker forked for the job.
    ///
    /// - Parameters:
    ///   - input: The GIF, in a sealed memfd.
    ///   - output: An empty file open for reading and writing, written by position.
    func launch(_ job: WorkerJob, input: SharedDescriptor, output: SharedDescriptor) throws(SystemError) -> Launched {
        let (channel, workerEnd) = try Self.messagePair()
        let (guardian, zygoteEnd) = try Self.messagePair()
        let descriptors = [input.number, output.number, workerEnd.number, zygoteEnd.number]
        var control = running.withLock { $0.control }
        do throws(SystemError) {
            try MessageChannel(socket: control.number).send(WorkerMessage(job), descriptors: descriptors)
        } catch {
            guard error.code == EPIPE || error.code == ECONNRESET || error.code == ENOTCONN else { throw error }
            control = try replacement(for: control)
            try MessageChannel(socket: control.number).send(WorkerMessage(job), descriptors: descriptors)
        }
        return Launched(channel: channel, guardian: guardian, control: control)
    }

    /// Has the next job go to another zygote than the one behind `dead`, which is killed, and its workers with it.
    func replace(_ dead: SharedDescriptor) throws(SystemError) {
        _ = try replacement(for: dead)
    }

    private static func messagePair() throws(SystemError) -> (SharedDescriptor, SharedDescriptor) {
        var pair: [Int32] = [-1, -1]
        guard clinux_message_pair(&pair) == 0 else { throw SystemError.last("socketpair") }
        return (SharedDescriptor(OwnedDescriptor(taking: pair[0])), SharedDescriptor(OwnedDescriptor(taking: pair[1])))
    }

    /// Another zygote in place of the one behind `dead`, which the first of several callers starts.
    private func replacement(for dead: SharedDescriptor) throws(SystemError) -> SharedDescriptor {
        let outcome: Result<SharedDescriptor, SystemError> = running.withLock { running in
            if running.control !== dead { return .success(running.control) }
            // A child of ours that hangs up is about to end, but its sockets close before it can be waited for. Killed, it
            // ends at once, and its entry in the process table goes.
            if running.process > 0 {
                kill(running.process, SIGKILL)
                Self.reap(&running)
            }
            do throws(SystemError) {
                let replacements = running.replacements + 1
                running = try Self.spawned(executable)
                running.replacements = replacements
                return .success(running.control)
            } catch {
                return .failure(error)
            }
        }
        return try outcome.get()
    }
}
