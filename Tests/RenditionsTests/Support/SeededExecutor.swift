import Dispatch
import Foundation
import Synchronization
import TestSupport

/// Runs tasks one step at a time on one thread, in an order that a seed decides: at each step any task that can go on may.
///
/// Only what waits for other threads (the cache's) comes in when it is ready, so that one seed may give several orders.
final class SeededExecutor: TaskExecutor {
    private struct State {
        var ready: [UnownedJob] = []
        var isDone = false
    }

    private let state = Mutex(State())
    private let signal = DispatchSemaphore(value: 0)

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        state.withLock { $0.ready.append(job) }
        signal.signal()
    }

    /// Runs what is enqueued until ``finish()``, on a thread of its own.
    ///
    /// - Parameter whenIdle: Called when no task can go on and nothing has come from other threads for a moment.
    func start(seed: UInt64, whenIdle: @escaping @Sendable () -> Void = {}) {
        let thread = Thread { [self] in
            var generator = SeededNumbers(seed: seed)
            while true {
                while signal.wait(timeout: .now() + .microseconds(300)) == .timedOut { whenIdle() }
                let (job, isDone) = state.withLock { state -> (UnownedJob?, Bool) in
                    guard let index = state.ready.indices.randomElement(using: &generator) else { return (nil, state.isDone) }
                    return (state.ready.remove(at: index), false)
                }
                job?.runSynchronously(on: asUnownedTaskExecutor())
                if isDone { return }
            }
        }
        thread.stackSize = 4 << 20
        thread.start()
    }

    /// Ends the thread once nothing is ready any more.
    func finish() {
        state.withLock { $0.isDone = true }
        signal.signal()
    }
}
