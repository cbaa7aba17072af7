internal import CLinux
internal import Glibc
internal import Media
internal import SystemIO

/// The zygote process. It has one thread and all libraries loaded, forks one worker per job, and keeps one worker ready.
///
/// Jobs arrive over the server's control socket, each with a guardian socket that its worker never gets. When the server closes
/// its end of the guardian socket, or half of it, the zygote kills the worker. When a worker has ended, the zygote reports the
/// end over the guardian socket. When the control socket closes, the zygote ends, and with it every worker (PR_SET_PDEATHSIG).
struct ZygoteProcess {
    private struct Child {
        var process: pid_t
        var guardian: Int32
        /// The CPU time before the job, in microseconds.
        var cpuBefore: Int
        /// Whether the server abandoned the job. The worker has been killed and is not reaped yet.
        var isAbandoned = false
    }

    /// Conversions yield to the server: an answer from the cache takes microseconds and must not wait for the end of an
    /// encoder's time slice.
    private static let niceness: Int32 = 10

    private let control: Int32
    private let signals: Int32
    private let parent: Worker.Parent
    /// The output file of the warm-up; nil if spare workers do not warm up.
    private let warmUp: Int32?
    private var children: [Child] = []
    private var spare: SpareWorker?

    /// Serves until the server closes the control socket, then ends the process.
    ///
    /// - Parameter warmsUp: Whether to run one conversion first, which pays off if many jobs follow.
    static func run(control: Int32, warmsUp: Bool) -> Never {
        clinux_name_thread("gifreel-zygote")
        clinux_use_one_arena()
        clinux_reset_signals()
        // The server stops the zygote by closing the control socket; a signal to the process group must not stop it earlier.
        for number in [SIGINT, SIGTERM, SIGPIPE, SIGHUP] { signal(number, SIG_IGN) }
        // A write beyond a worker's limit must fail with EFBIG, not kill the worker.
        signal(SIGXFSZ, SIG_IGN)
        // Workers inherit the ban on core dumps, so it applies even before they set their own limits.
        guard clinux_forbid_core_dumps() == 0, clinux_use_null_device() == 0, clinux_keep_only([control], 1) == 0
        else { fail("setting up a process", status: 70) }
        let signals = clinux_child_signals()
        guard signals >= 0 else { fail("signalfd", status: 70) }
        Transcoder.prepareLibraries()
        if warmsUp { _ = nice(Self.niceness) }
        let warmUp = warmsUp ? clinux_memfd_create("gifreel-warm-up") : -1
        if warmUp >= 0 { WarmUp.run(output: warmUp) }
        let memoryPriority = MemoryPriority()
        memoryPriority?.set(isWorker: false)
        // From here on no file can be opened.
        let memory = Int(clinux_address_space())
        let confinement = confine()
        let parent = Worker.Parent(zygote: getpid(), memory: memory, confinement: confinement, memoryPriority: memoryPriority)
        var zygote = ZygoteProcess(control: 3, signals: signals, parent: parent, warmUp: warmUp >= 0 ? warmUp : nil)
        try? MessageChannel(socket: zygote.control).send(WorkerMessage.ready(confinement))
        zygote.serve()
        zygote.end()
    }

    /// Drops all privileges that the zygote and its workers do not need. Ends the process if the kernel has a feature but refuses
    /// it.
    private static func confine() -> Confinement {
        guard clinux_no_new_privileges() == 0 else { fail("no_new_privs", status: 71) }
        guard clinux_drop_capabilities() == 0 else { fail("capset", status: 71) }
        let landlock = clinux_deny_files_and_network()
        guard landlock >= 0 else { fail("landlock", status: 71) }
        let filter = clinux_allow_zygote_calls()
        guard filter >= 0 else { fail("seccomp", status: 71) }
        return Confinement(filtersCalls: filter == 1, landlockVersion: Int(landlock))
    }

    /// Writes what failed to standard error, and ends the process.
    private static func fail(_ call: String, status: Int32) -> Never {
        let line = "gifreel: the worker process cannot confine itself: \(SystemError.last(call))\n"
        _ = Array(line.utf8).withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
        _exit(status)
    }

    private mutating func serve() {
        spare = SpareWorker(parent: parent, warmUp: warmUp)
        while true {
            var polled = [
                pollfd(fd: control, events: Int16(POLLIN), revents: 0),
                pollfd(fd: signals, events: Int16(POLLIN), revents: 0),
            ]
            polled += children.map { pollfd(fd: $0.isAbandoned ? -1 : $0.guardian, events: Int16(POLLIN), revents: 0) }
            guard poll(&polled, nfds_t(polled.count), -1) >= 0 || errno == EINTR else { return }
            for (index, entry) in polled.dropFirst(2).enumerated() where entry.revents != 0 {
                kill(children[index].process, SIGKILL)
                children[index].isAbandoned = true
            }
            if polled[1].revents != 0 { reap() }
            if polled[0].revents != 0 && !accept() { return }
        }
    }

    /// Receives a job and starts its worker; returns false if the control socket is closed.
    private mutating func accept() -> Bool {
        guard let received = try? MessageChannel(socket: control).receive() else { return false }
        guard let job = received.message?.job, received.descriptors.count == 4 else {
            for descriptor in received.descriptors { close(descriptor) }
            return true
        }
        let guardian = received.descriptors[3]
        defer { for descriptor in received.descriptors[..<3] { close(descriptor) } }
        // If the spare worker has ended, the second call forks another one.
        guard let worker = begin(job, Array(received.descriptors[..<3])) ?? begin(job, Array(received.descriptors[..<3])) else {
            report(WorkerExit(code: WorkerExit.notForked, signal: nil, cpuMicroseconds: 0, peakBytes: 0), guardian)
            return true
        }
        children.append(Child(process: worker.process, guardian: guardian, cpuBefore: worker.cpu))
        return true
    }

    /// Starts the job in the spare worker or in a new worker; returns nil if that fails.
    private mutating func begin(_ job: WorkerJob, _ descriptors: [Int32]) -> (process: pid_t, cpu: Int)? {
        guard let worker = spare ?? SpareWorker(parent: parent, warmUp: nil) else { return nil }
        spare = nil
        let cpu = worker.cpuMicroseconds
        return worker.begin(job, descriptors: descriptors) ? (worker.process, cpu) : nil
    }

    private mutating func reap() {
        var drained = [UInt8](repeating: 0, count: 1024)
        while read(signals, &drained, drained.count) > 0 {}
        var exit = clinux_child_exit()
        var hasJobEnded = false
        while clinux_reap(&exit) == 1 {
            if let spare, spare.process == exit.pid {
                spare.forget()
                self.spare = nil
            }
            guard let index = children.firstIndex(where: { $0.process == exit.pid }) else { continue }
            let child = children.remove(at: index)
            var end = WorkerExit(exit)
            end.cpuMicroseconds = max(0, end.cpuMicroseconds - child.cpuBefore)
            report(end, child.guardian)
            hasJobEnded = true
        }
        // A fork and a warm-up during a job would take CPU time from the job. A spare worker that ended by itself is not
        // replaced, because its successors could do the same in a loop. A zygote warms up only if many jobs are expected.
        if hasJobEnded, spare == nil, warmUp != nil { spare = SpareWorker(parent: parent, warmUp: warmUp) }
    }

    /// Ends the process, and the spare worker with it.
    private func end() -> Never {
        if let spare {
            kill(spare.process, SIGKILL)
            waitpid(spare.process, nil, 0)
        }
        _exit(0)
    }

    private func report(_ exit: WorkerExit, _ guardian: Int32) {
        // This fails if the server has closed its end and no longer needs the report.
        try? MessageChannel(socket: guardian).send(WorkerMessage.exit(exit))
        close(guardian)
    }
}
