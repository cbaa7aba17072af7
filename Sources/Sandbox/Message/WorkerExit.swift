internal import CLinux

/// How a worker process ended, as the zygote tells it.
package struct WorkerExit: Sendable, Equatable {
    /// The exit code when the zygote could not fork; then there was no worker.
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

extension WorkerMessage {
    init(_ exit: WorkerExit) {
        self.init(
            .exit,
            [Int64(exit.code ?? -1), Int64(exit.signal ?? 0), Int64(exit.cpuMicroseconds), Int64(exit.peakBytes)])
    }

    /// The end that the message tells of; nil when it tells of none.
    var exit: WorkerExit? {
        guard kind == .exit else { return nil }
        return WorkerExit(
            code: self[0] < 0 ? nil : Int32(truncatingIfNeeded: self[0]),
            signal: self[1] == 0 ? nil : Int32(truncatingIfNeeded: self[1]),
            cpuMicroseconds: self[2], peakBytes: self[3])
    }
}
