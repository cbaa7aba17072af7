internal import Dispatch
internal import Glibc
internal import Synchronization

/// Waits for asynchronous work on a thread outside Swift's cooperative pool.
enum Blocking {
    /// Runs `work`, and returns its result or throws its error. Blocks the calling thread.
    static func wait<Value: Sendable, Failure: Error>(
        _ work: @escaping @Sendable () async throws(Failure) -> Value
    ) throws(Failure) -> Value {
        let result = Mutex<Result<Value, Failure>?>(nil)
        let done = DispatchSemaphore(value: 0)
        Task.detached {
            do throws(Failure) {
                let value = try await work()
                result.withLock { $0 = .success(value) }
            } catch {
                result.withLock { $0 = .failure(error) }
            }
            done.signal()
        }
        while true {
            done.wait()
            if let result = result.withLock({ $0 }) { return try result.get() }
        }
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
