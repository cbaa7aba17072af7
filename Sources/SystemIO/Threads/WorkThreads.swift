internal import DequeModule
internal import Synchronization

/// Runs blocking work outside Swift's cooperative pool and I/O threads. ``WorkThreads`` is the implementation; simulations
/// replace it with one that controls the order of the work.
package protocol BlockingWork: Sendable {
    typealias Work = @Sendable () -> Void

    /// Queues `work`.
    ///
    /// - Returns: False if the queue is full or closed; `work` then does not run.
    func submit(_ work: @escaping Work) -> Bool

    /// Refuses further work and waits until the queued work is done. Blocks.
    func close()
}

extension BlockingWork {
    /// Runs `work` and returns its result; nil if the queue is full or closed. Suspends without blocking.
    package func run<Result: Sendable>(_ work: @escaping @Sendable () -> Result) async -> Result? {
        await withCheckedContinuation { continuation in
            if !submit({ continuation.resume(returning: work()) }) { continuation.resume(returning: nil) }
        }
    }
}

/// A fixed-size thread pool for blocking work, with a bounded queue. Blocking work must not run on Swift's cooperative pool or
/// on an I/O thread. The threads keep the pool alive until ``close()``.
package final class WorkThreads: BlockingWork {
    private struct State {
        var queue: Deque<Work> = []
        var isClosing = false
        var threads: [SystemThread] = []
    }

    private let limit: Int
    private let state = Mutex(State())
    /// Counts the queued work and, after ``close()``, the threads that are to end.
    private let wakeUps = Semaphore()

    /// - Parameters:
    ///   - count: The number of threads, which start at once.
    ///   - limit: The maximum number of closures in the queue.
    ///   - name: The threads' name in `top`, at most 15 bytes.
    package init(count: Int, limit: Int, name: String) {
        self.limit = limit
        let threads = (0..<count).compactMap { _ in SystemThread.start(name: name) { self.run() } }
        state.withLock { $0.threads = threads }
    }

    /// Queues `work` for the threads, which run it in order of arrival.
    ///
    /// - Returns: False if the queue is full or closed; `work` then does not run.
    package func submit(_ work: @escaping Work) -> Bool {
        let isQueued = state.withLock { state in
            guard !state.isClosing, !state.threads.isEmpty, state.queue.count < limit else { return false }
            state.queue.append(work)
            return true
        }
        if isQueued { wakeUps.signal() }
        return isQueued
    }

    /// Refuses further work, waits for queued work, and ends the threads. Blocks; must not be called from these threads.
    package func close() {
        let ending = state.withLock { state in
            state.isClosing = true
            defer { state.threads = [] }
            return state.threads
        }
        for _ in ending { wakeUps.signal() }
        for thread in ending { thread.join() }
    }

    private func run() {
        while true {
            wakeUps.wait()
            // Only after `close` are there more wake-ups than work.
            guard let work = state.withLock({ $0.queue.popFirst() }) else { return }
            work()
        }
    }
}
