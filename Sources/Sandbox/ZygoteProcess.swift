internal import CLinux
internal import Glibc
internal import Media

/// The inside of the zygote: a process of one thread that has the libraries loaded and forks once per job.
///
/// It knows the server's control socket, over which jobs come, and one channel a job. When the server closes a job's
/// channel, its worker is killed; when a worker has ended, the channel carries how. When the control socket ends,
/// so does the zygote, and with it every worker (PR_SET_PDEATHSIG).
struct ZygoteProcess {
    private struct Child {
        var process: pid_t
        var channel: Int32
        /// The server has left; the worker has been killed and is yet to be reaped.
        var isAbandoned = false
    }

    private let control: Int32
    private let signals: Int32
    private var children: [Child] = []

    /// Serves until the server is gone, and ends the process.
    static func run(control: Int32) -> Never {
        clinux_name_thread("gifreel-zygote")
        clinux_use_one_arena()
        // Stopping is the server's to say, by closing the control socket: a signal to the whole group must not come first.
        signal(SIGINT, SIG_IGN)
        signal(SIGTERM, SIG_IGN)
        signal(SIGPIPE, SIG_IGN)
        signal(SIGHUP, SIG_IGN)
        guard clinux_keep_only([control], 1) == 0 else { _exit(70) }
        let signals = clinux_child_signals()
        guard signals >= 0 else { _exit(70) }
        Transcoder.silenceLibraries()
        var zygote = ZygoteProcess(control: 3, signals: signals)
        zygote.serve()
        _exit(0)
    }

    private init(control: Int32, signals: Int32) {
        self.control = control
        self.signals = signals
    }

    private mutating func serve() {
        while true {
            var polled = [
                pollfd(fd: control, events: Int16(POLLIN), revents: 0),
                pollfd(fd: signals, events: Int16(POLLIN), revents: 0),
            ]
            polled += children.map { pollfd(fd: $0.isAbandoned ? -1 : $0.channel, events: Int16(POLLIN), revents: 0) }
            guard poll(&polled, nfds_t(polled.count), -1) >= 0 || errno == EINTR else { return }
            for (index, entry) in polled.dropFirst(2).enumerated() where entry.revents != 0 {
                abandon(at: index)
            }
            if polled[1].revents != 0 { reap() }
            if polled[0].revents != 0 && !accept() { return }
        }
    }

    /// Takes a job and forks its worker; false when the server is gone.
    private mutating func accept() -> Bool {
        guard let received = try? MessageChannel(socket: control).receive() else { return false }
        defer { for descriptor in received.descriptors { close(descriptor) } }
        guard let job = received.message?.job, received.descriptors.count == 3 else { return true }
        // The zygote's own end of the channel, over which it tells how the worker ended.
        let channel = fcntl(received.descriptors[2], F_DUPFD_CLOEXEC, 0)
        guard channel >= 0 else { return true }
        let process = clinux_fork()
        if process == 0 { Worker.run(job, descriptors: received.descriptors) }
        guard process > 0 else {
            // The channel's end tells the server that there is no worker.
            close(channel)
            return true
        }
        children.append(Child(process: process, channel: channel))
        return true
    }

    private mutating func abandon(at index: Int) {
        kill(children[index].process, SIGKILL)
        children[index].isAbandoned = true
    }

    private mutating func reap() {
        var drained = [UInt8](repeating: 0, count: 1024)
        while read(signals, &drained, drained.count) > 0 {}
        var exit = clinux_child_exit()
        while clinux_reap(&exit) == 1 {
            guard let index = children.firstIndex(where: { $0.process == exit.pid }) else { continue }
            let child = children.remove(at: index)
            // Where the server has left there is nobody to tell.
            try? MessageChannel(socket: child.channel).send(WorkerMessage(exit))
            close(child.channel)
        }
    }
}
