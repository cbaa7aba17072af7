internal import Dispatch
internal import Glibc
internal import Synchronization

/// Waits on a thread that is not of Swift's pool for work that is.
enum Blocking {
    private final class Box<Value: Sendable>: Sendable {
        let value = Mutex<Value?>(nil)
    }

    /// The result of `work`; the calling thread sleeps meanwhile.
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

/// Signals that are blocked in the calling thread and in those it makes, to be waited for by one of them.
struct BlockedSignals: Sendable {
    private let numbers: [Int32]

    init(_ numbers: [Int32]) {
        self.numbers = numbers
        var set = Self.set(numbers)
        pthread_sigmask(SIG_BLOCK, &set, nil)
    }

    /// Sleeps until one of them comes, and returns its number.
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
