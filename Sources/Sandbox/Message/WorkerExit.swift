internal import CLinux

/// How a worker process ended, as the zygote reports it.
package struct WorkerExit: Sendable, Equatable {
    /// The exit code that stands for a failed fork: there was no worker.
    static let notForked: Int32 = 69

    /// The exit code, or nil where a signal ended it.
    package var code: Int32?
    /// The signal that ended it.
    package var signal: Int32?
    /// Processor time in microseconds, of the process and of the kernel for it.
    package var cpuMicroseconds: Int
    /// The largest resident size, in bytes.
    package var peakBytes: Int
}

extension WorkerExit {
    init(_ exit: clinux_child_exit) {
        self.init(
            code: exit.code < 0 ? nil : exit.code, signal: exit.signal == 0 ? nil : exit.signal,
            cpuMicroseconds: Int(exit.user_microseconds + exit.system_microseconds), peakBytes: Int(exit.peak_bytes))
    }
}
