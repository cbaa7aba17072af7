internal import CLinux
package import Media

/// A job for a worker process, and the resources it may use.
package struct WorkerJob: Sendable, Equatable {
    package var transcoder: Transcoder
    package var allowance: WorkerAllowance
    /// The number of the user's processes and threads on the whole system beyond which the worker cannot start another thread;
    /// 0 for no limit.
    var taskLimit = 0
    /// A fault that a test injects. Release builds ignore it.
    package var fault: WorkerFault?

    package init(transcoder: Transcoder, allowance: WorkerAllowance = WorkerAllowance(), fault: WorkerFault? = nil) {
        self.transcoder = transcoder
        self.allowance = allowance
        self.fault = fault
    }
}

/// The zygote's report on the end of a worker process.
package struct WorkerExit: Sendable, Equatable {
    /// The code for a failed fork: there was no worker. Exit codes of processes have eight bits.
    static let notForked: Int32 = 256

    /// The exit code, or nil if a signal ended the process.
    package var code: Int32?
    /// The signal that ended the process.
    package var signal: Int32?
    /// User and system CPU time, in microseconds.
    package var cpuMicroseconds: Int
    /// The peak resident set size, in bytes.
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
    /// Whether a filter allows only listed system calls (seccomp).
    package var filtersCalls: Bool
    /// The version of the kernel's Landlock, which forbids opening files and connecting; 0 if it is missing.
    package var landlockVersion: Int

    /// The names of the missing features.
    package var missing: [String] {
        (filtersCalls ? [] : ["seccomp"]) + (landlockVersion > 0 ? [] : ["landlock"])
    }
}
