internal import CLinux
package import Media

/// A job for a worker process, and the resources it may use.
package struct WorkerJob: Sendable, Equatable {
    package var transcoder: Transcoder
    package var allowance: WorkerAllowance
    /// The number of processes and threads of the user, those of other processes included, beyond which the worker cannot start
    /// another thread; 0 for no limit.
    var taskLimit = 0
    /// A fault that a test injects. Release builds ignore it.
    package var fault: WorkerFault?

    package init(transcoder: Transcoder, allowance: WorkerAllowance = WorkerAllowance(), fault: WorkerFault? = nil) {
        self.transcoder = transcoder
        self.allowance = allowance
        self.fault = fault
    }
}

/// How a worker process ended, as the zygote reports it.
package struct WorkerExit: Sendable, Equatable {
    /// The code that stands for a failed fork: there was no worker. A process has codes of eight bits.
    static let notForked: Int32 = 256

    /// The exit code, or nil if a signal ended it.
    package var code: Int32?
    /// The signal that ended it.
    package var signal: Int32?
    /// Processor time in microseconds, of the process and of the kernel for it.
    package var cpuMicroseconds: Int
    /// The largest resident size, in bytes.
    package var peakBytes: Int
}

extension WorkerExit: CustomStringConvertible {
    /// What happened, as the predicate of a sentence: `was killed by signal 9 after 0.49 s of CPU time`.
    package var description: String {
        let end =
            if let signal { "was killed by signal \(signal)" } else if let code { "ended with status \(code)" } else { "ended" }
        let hundredths = max(0, cpuMicroseconds / 10_000)
        let fraction = hundredths % 100
        return "\(end) after \(hundredths / 100).\(fraction < 10 ? "0" : "")\(fraction) s of CPU time"
    }

    init(_ exit: clinux_child_exit) {
        self.init(
            code: exit.code < 0 ? nil : exit.code, signal: exit.signal == 0 ? nil : exit.signal,
            cpuMicroseconds: Int(exit.user_microseconds + exit.system_microseconds), peakBytes: Int(exit.peak_bytes))
    }
}

/// The kernel features that confine the zygote and every worker.
package struct Confinement: Sendable, Equatable {
    /// Whether only the system calls on a list are allowed (seccomp).
    package var filtersCalls: Bool
    /// The kernel's version of landlock, which forbids opening files and connecting; 0 without it.
    package var landlockVersion: Int

    package init(filtersCalls: Bool, landlockVersion: Int) {
        self.filtersCalls = filtersCalls
        self.landlockVersion = landlockVersion
    }

    /// The names of the missing features.
    package var missing: [String] {
        (filtersCalls ? [] : ["seccomp"]) + (landlockVersion > 0 ? [] : ["landlock"])
    }
}
