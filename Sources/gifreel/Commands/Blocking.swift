internal import Dispatch
internal import Synchronization

/// Waits for asynchronous work on a thread outside Swift's cooperative pool.
enum Blocking {
    private final class Box<Value: Sendable>: Sendable {
        let value = Mutex<Value?>(nil)
    }

    /// Runs `work` and returns its result. Blocks the calling thread.
    static func wait<Value: Sendable>(_ work: @escaping @Sendable () async -> Value) -> Value {
        let box = Box<Value>()
        let done = DispatchSemaphore(value: 0)
        Task.detached {
            let value = await work()
            box.value.withLock { $0 = value }
            done.signal()
        }
        while true {
            done.wait()
            if let value = box.value.withLock({ $0 }) { return value }
        }
    }
}
