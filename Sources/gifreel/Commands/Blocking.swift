internal import Dispatch
internal import Glibc
internal import Synchronization
internal import SystemIO

/// Waits for asynchronous work on a thread outside Swift's cooperative pool.
enum Blocking {
    /// Runs `work` and returns its result. Blocks the calling thread.
    static func wait<Value: Sendable>(_ work: @escaping @Sendable () async -> Value) -> Value {
        let result = Mutex<Value?>(nil)
        let done = DispatchSemaphore(value: 0)
        Task.detached {
            let value = await work()
            result.withLock { $0 = value }
            done.signal()
        }
        while true {
            done.wait()
            if let value = result.withLock({ $0 }) { return value }
        }
    }
}

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

/// Signals that are blocked in the calling thread and in the threads it starts, so that one thread can wait for them.
struct BlockedSignals: Sendable {
    private let numbers: [Int32]

    init(_ numbers: [Int32]) {
        self.numbers = numbers
        var set = Self.set(numbers)
        pthread_sigmask(SIG_BLOCK, &set, nil)
    }

    /// Unblocks signals in the calling thread. A program inherits the mask of the thread that starts it, and threads of a pool
    /// may have all signals blocked.
    static func unblock(_ numbers: [Int32]) {
        var set = Self.set(numbers)
        pthread_sigmask(SIG_UNBLOCK, &set, nil)
    }

    /// Blocks until one of the signals arrives, and returns its number.
    @discardableResult
    func waitForOne() -> Int32 {
        var set = Self.set(numbers)
        var number: Int32 = 0
        while sigwait(&set, &number) != 0 {}
        return number
    }

    private static func set(_ numbers: [Int32]) -> sigset_t {
        var set = sigset_t()
        sigemptyset(&set)
        for number in numbers { sigaddset(&set, number) }
        return set
    }
}
