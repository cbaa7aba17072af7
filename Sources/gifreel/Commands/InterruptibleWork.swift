internal import Glibc
internal import SystemIO

/// Waits for asynchronous work that a signal may interrupt.
enum InterruptibleWork {
    /// Runs `work` and returns its result. Blocks the calling thread.
    ///
    /// The first signal cancels the task of the work. The second one ends the process at once.
    ///
    /// - Parameters:
    ///   - signals: Blocked in all threads.
    ///   - exitCode: The exit code after the second signal.
    /// - Returns: The result, and whether a signal arrived before it.
    static func wait<Value: Sendable>(
        signals: BlockedSignals, exitCode: Int32, _ work: @escaping @Sendable () async -> Value
    ) -> (value: Value, wasInterrupted: Bool) {
        let task = Task.detached { await work() }
        // The thread is not joined: it waits until the process ends.
        _ = SystemThread.start(name: "gifreel-signals") {
            signals.waitForOne()
            task.cancel()
            signals.waitForOne()
            _exit(exitCode)
        }
        let value = Blocking.wait { await task.value }
        return (value, task.isCancelled)
    }
}
