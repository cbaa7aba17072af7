import Dispatch
import Glibc
import Synchronization
import TestSupport

/// Runs work in several threads, of which only one runs at a time. At each ``pause()`` it selects the next thread by a seed: the same
/// seed gives the same order.
final class Turns: Sendable {
    private final class Runner: Sendable {
        let turn = DispatchSemaphore(value: 0)
        let isDone = Atomic(false)
    }

    private let runners = Mutex<[pthread_t: Runner]>([:])
    private let moved = DispatchSemaphore(value: 0)

    /// Lets another thread run. Returns at once on other threads than those of ``run(_:seed:)``.
    func pause() {
        guard let runner = runners.withLock({ $0[pthread_self()] }) else { return }
        moved.signal()
        runner.turn.wait()
    }

    /// Runs all `work` until it has ended.
    func run(_ work: [@Sendable () -> Void], seed: UInt64) {
        var generator = SeededNumbers(seed: seed)
        let all = work.map { _ in Runner() }
        for (runner, body) in zip(all, work) {
            startThread {
                self.runners.withLock { $0[pthread_self()] = runner }
                runner.turn.wait()
                body()
                self.runners.withLock { $0[pthread_self()] = nil }
                runner.isDone.store(true, ordering: .sequentiallyConsistent)
                self.moved.signal()
            }
        }
        while let next = all.filter({ !$0.isDone.load(ordering: .sequentiallyConsistent) }).randomElement(using: &generator) {
            next.turn.signal()
            moved.wait()
        }
    }
}
