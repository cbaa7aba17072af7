internal import CLinux
internal import Glibc
internal import Synchronization
package import SystemIO

/// The loss of a zygote process that ended unexpectedly or did not respond, and the attempt to replace it.
package struct ZygoteLoss: Sendable, CustomStringConvertible {
    /// The ID of the lost process.
    package let process: Int32
    /// The signal that ended the process; `SIGKILL` if it was killed because it did not respond. Nil after a normal exit.
    package let signal: Int32?
    /// The ID of the replacement, or the error that prevented it. The next job tries again.
    package let replacement: Result<Int32, SystemError>

    package var description: String {
        let end = signal.map { "signal \($0)" } ?? "an exit"
        return switch replacement {
        case .success(let new): "zygote process \(process) ended by \(end); process \(new) replaces it"
        case .failure(let error): "zygote process \(process) ended by \(end); it could not be replaced: \(error)"
        }
    }
}

/// The server's handle on the zygote, the process that forks workers. A zygote that dies or does not respond is replaced.
///
/// Thread-safe: any thread may launch jobs.
package final class Zygote: Sendable {
    /// The hidden command that turns the executable into a zygote. Its control socket is descriptor 3.
    package static let command = "zygote"

    private struct Running {
        var control: SharedDescriptor
        var process: Int32
        var startedAt = ContinuousClock.now
        /// The confinement that the zygote reported; nil before its report.
        var confinement: Confinement?
    }

    private struct State {
        var running: Running
        var replacements = 0
        var isStopped = false
        var lossHandler: (@Sendable (ZygoteLoss) -> Void)?
    }

    /// A requested worker.
    struct Launched {
        /// The socket over which the worker replies.
        let channel: SharedDescriptor
        /// The socket over which the zygote reports the worker's end. Closing it, or its sending half, kills the worker.
        let guardian: SharedDescriptor
        /// The control socket of the worker's zygote.
        let control: SharedDescriptor
    }

    /// The only variable that a spawned zygote inherits: the loader needs it, and it holds no secret.
    private static let inherited = "LD_LIBRARY_PATH"
    /// The timeout for a zygote to become ready, in milliseconds.
    private static let startTimeout: Int32 = 20_000
    /// The timeout for a zygote to end before it is killed, in milliseconds.
    private static let stopTimeout: Int32 = 2000
    /// A zygote that lived for less time is replaced only when a job needs it, so a zygote that cannot run is not restarted in
    /// a loop.
    private static let shortestUsefulLife: Duration = .seconds(1)

    private let executable: String
    private let state: Mutex<State>

    private init(_ running: Running, executable: String) {
        state = Mutex(State(running: running))
        self.executable = executable
    }

    deinit {
        // Ends the zygote and wakes the thread that watches it.
        shutdown(state.withLock { $0.running.control.number }, Int32(SHUT_RDWR))
    }

    /// The ID of the zygote's process.
    package var process: Int32 { state.withLock { $0.running.process } }

    /// The number of zygote replacements.
    package var replacements: Int { state.withLock { $0.replacements } }

    // MARK: Starting

    /// Forks the zygote from this process, which takes less than a millisecond.
    ///
    /// Call this while the process has one thread: `fork` copies only the calling thread, and locks that other threads hold
    /// stay locked in the copy. The zygote and its workers inherit everything this process has in memory.
    ///
    /// - Parameter warmsUp: Whether the zygote runs one conversion first, which pays off if many jobs follow.
    package static func fork(warmsUp: Bool) throws(SystemError) -> Zygote {
        let (control, zygoteEnd) = try messagePair()
        let process = clinux_fork()
        if process == 0 { ZygoteProcess.run(control: zygoteEnd.number, warmsUp: warmsUp) }
        guard process > 0 else { throw SystemError.last("fork") }
        return Zygote(Running(control: control, process: process), executable: "/proc/self/exe")
    }

    /// Starts the executable as a zygote. Safe in a process with several threads. Returns at once; jobs wait until the zygote's
    /// libraries are loaded and warm (20–50 ms).
    ///
    /// The zygote inherits neither the settings nor the secrets nor the memory layout of this process.
    ///
    /// - Parameter executable: The path of `gifreel`.
    package static func spawn(executable: String = "/proc/self/exe") throws(SystemError) -> Zygote {
        Zygote(try spawned(executable), executable: executable)
    }

    /// Turns the calling process into a zygote; called by the hidden command.
    package static func serve() -> Never {
        ZygoteProcess.run(control: 3, warmsUp: true)
    }

    private static func spawned(_ executable: String) throws(SystemError) -> Running {
        let (control, zygoteEnd) = try messagePair()
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, zygoteEnd.number, 3)
        var process: pid_t = 0
        var arguments = [strdup("gifreel"), strdup(command), nil]
        var environment = [getenv(inherited).flatMap { strdup("\(inherited)=" + String(cString: $0)) }, nil]
        defer { for text in arguments + environment { free(text) } }
        let code = withExtendedLifetime(zygoteEnd) {
            posix_spawn(&process, executable, &actions, nil, &arguments, &environment)
        }
        guard code == 0 else { throw SystemError("posix_spawn", code: code) }
        return Running(control: control, process: process)
    }

    /// Blocks until the zygote is ready and returns its confinement; nil if it does not become ready in time.
    package func confinement() -> Confinement? {
        let (known, control) = state.withLock { ($0.running.confinement, $0.running.control) }
        if let known { return known }
        var polled = pollfd(fd: control.number, events: Int16(POLLIN), revents: 0)
        guard poll(&polled, 1, Self.startTimeout) == 1,
            let reported = try? MessageChannel(socket: control.number).receive()?.message?.confinement
        else { return nil }
        state.withLock { if $0.running.control === control { $0.running.confinement = reported } }
        return reported
    }

    // MARK: Jobs

    /// Requests a worker for the job.
    ///
    /// - Parameters:
    ///   - input: The source file, in a sealed memfd.
    ///   - output: An empty file open for reading and writing, written with pwrite.
    func launch(_ job: WorkerJob, input: SharedDescriptor, output: SharedDescriptor) throws(SystemError) -> Launched {
        let (channel, workerEnd) = try Self.messagePair()
        let (guardian, zygoteEnd) = try Self.messagePair()
        let descriptors = [input.number, output.number, workerEnd.number, zygoteEnd.number]
        var control = state.withLock { $0.running.control }
        do throws(SystemError) {
            try MessageChannel(socket: control.number).send(WorkerMessage.job(job), descriptors: descriptors)
        } catch {
            guard error.code == EPIPE || error.code == ECONNRESET || error.code == ENOTCONN else { throw error }
            control = try replace(control)
            try MessageChannel(socket: control.number).send(WorkerMessage.job(job), descriptors: descriptors)
        }
        return Launched(channel: channel, guardian: guardian, control: control)
    }

    private static func messagePair() throws(SystemError) -> (SharedDescriptor, SharedDescriptor) {
        var pair: [Int32] = [-1, -1]
        guard clinux_message_pair(&pair) == 0 else { throw SystemError.last("socketpair") }
        return (SharedDescriptor(OwnedDescriptor(taking: pair[0])), SharedDescriptor(OwnedDescriptor(taking: pair[1])))
    }

    // MARK: Losing and replacing

    /// Calls `handler` for every zygote that is lost from now on, on the thread that notices the loss. The death of an idle
    /// zygote is noticed at once, and the zygote is replaced. The handler must not block.
    package func onLoss(_ handler: @escaping @Sendable (ZygoteLoss) -> Void) {
        let running = state.withLock { state in
            state.lossHandler = handler
            return state.running
        }
        watch(running)
    }

    /// Ends the zygote and waits until it is gone. Its CPU time and its workers' then count as that of this process's children.
    /// No job may be launched afterwards. Blocks for about a millisecond, or for two seconds if the zygote does not respond.
    package func stop() {
        state.withLock { state in
            guard !state.isStopped else { return }
            state.isStopped = true
            let control = state.running.control.number
            // Closes only the sending half, because the socket hangs up when the zygote has ended.
            shutdown(control, Int32(SHUT_WR))
            if !Self.hangsUp(control, within: Self.stopTimeout), state.running.process > 0 {
                kill(state.running.process, SIGKILL)
            }
            _ = Self.reap(&state.running)
        }
    }

    /// Blocks until the other end of a socket is closed; returns false after the timeout, -1 for none.
    private static func hangsUp(_ socket: Int32, within milliseconds: Int32) -> Bool {
        var polled = pollfd(fd: socket, events: 0, revents: 0)
        var count = poll(&polled, 1, milliseconds)
        while count < 0 && errno == EINTR { count = poll(&polled, 1, milliseconds) }
        return count > 0
    }

    /// Waits for the end of the process and returns the signal that ended it. Afterwards, its ID may belong to another process.
    private static func reap(_ running: inout Running) -> Int32? {
        guard running.process > 0 else { return nil }
        var status: Int32 = 0
        while waitpid(running.process, &status, 0) < 0 && errno == EINTR {}
        running.process = -1
        return status & 0x7f == 0 ? nil : status & 0x7f
    }

    /// Reaps the workers of lost zygotes, which have become children of this process if it is the first of a container. Call this
    /// while no zygote is running.
    private static func reapOrphans() {
        guard getpid() == 1 else { return }
        while waitpid(-1, nil, WNOHANG) > 0 {}
    }

    /// Watches one zygote on a thread of its own: the control socket hangs up when the zygote dies.
    private func watch(_ running: Running) {
        let control = running.control
        let thread = SystemThread.start(name: "gifreel-zygotes") { [weak self] in
            _ = Self.hangsUp(control.number, within: -1)
            if running.startedAt.duration(to: .now) > Self.shortestUsefulLife { _ = try? self?.replace(control) }
        }
        thread?.detach()
    }

    /// Replaces the zygote of the control socket `dead`, unless another caller has, and returns the new control socket. The old
    /// zygote and its workers are killed.
    @discardableResult
    func replace(_ dead: SharedDescriptor) throws(SystemError) -> SharedDescriptor {
        var loss: ZygoteLoss?
        var isNew = false
        let (outcome, handler): (Result<Running, SystemError>, (@Sendable (ZygoteLoss) -> Void)?) = state.withLock { state in
            if state.isStopped { return (.failure(SystemError("zygote", code: ESHUTDOWN)), nil) }
            if state.running.control !== dead { return (.success(state.running), nil) }
            // The sockets of an ending child are closed before it can be reaped. SIGKILL ends it at once, so waitpid is short.
            let process = state.running.process
            var signal: Int32?
            if process > 0 {
                kill(process, SIGKILL)
                signal = Self.reap(&state.running)
            }
            Self.reapOrphans()
            let outcome: Result<Running, SystemError>
            do throws(SystemError) {
                state.running = try Self.spawned(executable)
                state.replacements += 1
                isNew = true
                outcome = .success(state.running)
            } catch {
                outcome = .failure(error)
            }
            if process > 0 { loss = ZygoteLoss(process: process, signal: signal, replacement: outcome.map(\.process)) }
            return (outcome, state.lossHandler)
        }
        if let handler {
            if let loss { handler(loss) }
            if isNew, case .success(let running) = outcome { watch(running) }
        }
        return try outcome.get().control
    }
}
