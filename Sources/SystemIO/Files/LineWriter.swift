internal import CLinux
internal import Glibc
internal import Synchronization

/// Writes lines to a descriptor on its own thread, from a bounded queue.
///
/// Callers never wait for the output: ``append(_:)`` copies the lines into the queue and returns. If the queue is full because
/// the reader of a pipe stalls, the new lines are dropped. If a write fails because the disk is full or the pipe is closed, the
/// lines of that write are dropped. Dropped lines are counted, and the next successful write adds a line that reports how many
/// are missing.
///
/// Any thread.
package final class LineWriter: Sendable {
    private struct State {
        var queue: [UInt8] = []
        /// Lines dropped since the thread last took the queue. All of them are newer than the queued lines.
        var overflow = 0
        /// Lines dropped since the writer started.
        var dropped = 0
        var isClosing = false
    }

    /// The largest line storage, in bytes, that is kept for reuse.
    private static let storageLimit = 256 * 1024

    private let descriptor: SharedDescriptor
    private let capacity: Int
    private let notice: @Sendable (_ dropped: Int) -> [UInt8]
    private let state = Mutex(State())
    private let wakeup = Semaphore()
    private let hasEnded = Semaphore()

    /// Starts the thread. If the system cannot create a thread, all lines are dropped and counted.
    ///
    /// - Parameters:
    ///   - descriptor: An open descriptor. The writer shares it and does not change its flags.
    ///   - capacity: The maximum number of queued bytes.
    ///   - name: The thread's name in `top`, at most 15 bytes.
    ///   - notice: Creates the line, including its line feed, that reports the number of missing lines.
    package init(
        _ descriptor: SharedDescriptor, capacity: Int = 1 << 20, name: String,
        notice: @escaping @Sendable (_ dropped: Int) -> [UInt8]
    ) {
        self.descriptor = descriptor
        self.capacity = capacity
        self.notice = notice
        let thread = SystemThread.start(name: name) { self.run() }
        guard let thread else {
            state.withLock { $0.isClosing = true }
            hasEnded.signal()
            return
        }
        thread.detach()
    }

    /// Creates a writer on a duplicate of `number`, such as standard error.
    ///
    /// - Throws: ``SystemError`` if the descriptor is not open for writing.
    package convenience init(
        duplicating number: Int32, capacity: Int = 1 << 20, name: String,
        notice: @escaping @Sendable (_ dropped: Int) -> [UInt8]
    ) throws(SystemError) {
        guard StandardDescriptors.isWritable(number) else { throw SystemError("write", code: EBADF) }
        let copy = try retryingOnInterrupt("fcntl(F_DUPFD_CLOEXEC)") { fcntl(number, F_DUPFD_CLOEXEC, 3) }
        self.init(SharedDescriptor(OwnedDescriptor(taking: copy)), capacity: capacity, name: name, notice: notice)
    }

    /// Lines dropped since the writer started.
    package var droppedLines: Int { state.withLock { $0.dropped } }

    /// Queues lines, or drops all of them if they do not fit.
    ///
    /// - Parameter lines: One or more whole lines, each ending with a line feed.
    package func append(_ lines: UnsafeRawBufferPointer) {
        guard !lines.isEmpty else { return }
        let mustWake = state.withLock { state in
            guard !state.isClosing, state.queue.count + lines.count <= capacity else {
                let count = lines.lineCount
                state.overflow += count
                state.dropped += count
                return false
            }
            state.queue.append(contentsOf: lines)
            return state.queue.count == lines.count
        }
        if mustWake { wakeup.signal() }
    }

    /// Queues lines as ``append(_:)`` does.
    package func append(_ lines: [UInt8]) {
        lines.withUnsafeBytes { append($0) }
    }

    /// Refuses further lines and waits until the queued lines are written or `limit` has passed. Blocks.
    ///
    /// - Returns: Whether all queued lines were written, or dropped because of an error, in time.
    @discardableResult
    package func close(within limit: Duration) -> Bool {
        state.withLock { $0.isClosing = true }
        wakeup.signal()
        guard hasEnded.wait(for: limit) else { return false }
        // Lets a second caller get the same result.
        hasEnded.signal()
        return true
    }

    // MARK: The thread

    /// Writes queued lines until the writer is closed. The thread runs as SCHED_BATCH (sched(7)), because event loops are more
    /// urgent than a log, unless another policy was set for the process.
    private func run() {
        if sched_getscheduler(0) == SCHED_OTHER { _ = clinux_use_batch_scheduling(1) }
        var output = LineOutput(descriptor)
        // Dropped lines that have not been reported yet.
        var missing = 0
        var lines: [UInt8] = []
        while true {
            wakeup.wait()
            let (overflow, isClosing) = takeQueue(into: &lines)
            if missing > 0, output.write(notice(missing)) == 0 { missing = 0 }
            let lost = output.write(lines)
            if lost > 0 { state.withLock { $0.dropped += lost } }
            missing += lost + overflow
            // The lines that did not fit are newer than the queued lines.
            if overflow > 0, output.write(notice(missing)) == 0 { missing = 0 }
            if isClosing { break }
        }
        hasEnded.signal()
    }

    /// Moves the queue into `lines`, and lets the queue reuse the storage of `lines`.
    private func takeQueue(into lines: inout [UInt8]) -> (overflow: Int, isClosing: Bool) {
        // A long queue is rare, so its memory is released.
        lines.removeAll(keepingCapacity: lines.capacity <= Self.storageLimit)
        return state.withLock { state in
            swap(&state.queue, &lines)
            defer { state.overflow = 0 }
            return (state.overflow, state.isClosing)
        }
    }
}

/// The output descriptor of a ``LineWriter``, with the state of the last line. Used only by the writer's thread.
private struct LineOutput {
    private let descriptor: SharedDescriptor
    private let bytesPerWrite: Int
    private var isWithinLine = false

    init(_ descriptor: SharedDescriptor) {
        self.descriptor = descriptor
        var status = stat()
        // A write of up to PIPE_BUF bytes to a pipe is atomic (pipe(7)), so lines of several writers do not mix.
        let isPipe = fstat(descriptor.number, &status) == 0 && status.st_mode & S_IFMT == S_IFIFO
        bytesPerWrite = isPipe ? Int(PIPE_BUF) : .max
    }

    /// Writes whole lines. Returns the number of lines lost to an error.
    mutating func write(_ lines: [UInt8]) -> Int {
        lines.withUnsafeBytes { lines in
            var start = 0
            do throws(SystemError) {
                if isWithinLine, !lines.isEmpty {
                    try withUnsafeBytes(of: UInt8(ascii: "\n")) { byte throws(SystemError) in
                        try DescriptorIO.write(byte, to: descriptor.number)
                    }
                    isWithinLine = false
                }
                while start < lines.count {
                    let piece = UnsafeRawBufferPointer(rebasing: lines[start..<end(of: lines, from: start)])
                    try DescriptorIO.write(piece, to: descriptor.number, written: &start)
                }
                return 0
            } catch {
                if start > 0 { isWithinLine = lines[start - 1] != UInt8(ascii: "\n") }
                return UnsafeRawBufferPointer(rebasing: lines[start...]).lineCount
            }
        }
    }

    /// Returns the end of the last line that fits into one write, or of the first line if it does not fit.
    private func end(of lines: UnsafeRawBufferPointer, from start: Int) -> Int {
        guard lines.count - start > bytesPerWrite else { return lines.count }
        let feed = UInt8(ascii: "\n")
        if let last = lines[start..<start + bytesPerWrite].lastIndex(of: feed) { return last + 1 }
        return lines[start...].firstIndex(of: feed).map { $0 + 1 } ?? lines.count
    }
}

extension UnsafeRawBufferPointer {
    fileprivate var lineCount: Int { count { $0 == UInt8(ascii: "\n") } }
}
