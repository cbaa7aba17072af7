internal import DequeModule
internal import Glibc

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
/// on an I/O thread.
///
/// `@unchecked Sendable`: all state is accessed only with `mutex` locked. The mutex and the condition have fixed addresses
/// until `deinit`, which runs after the threads have ended, because each thread holds this object.
package final class WorkThreads: BlockingWork, @unchecked Sendable {
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let wake = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private let limit: Int
    private var queue: Deque<Work> = []
    private var isClosing = false
    private var threads: [SystemThread] = []

    /// - Parameters:
    ///   - count: The number of threads, which start at once.
    ///   - limit: The maximum number of closures in the queue.
    ///   - name: The threads' name in `top`, at most 15 bytes.
    package init(count: Int, limit: Int, name: String) {
        self.limit = limit
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(wake, nil)
        threads = (0..<count).compactMap { _ in SystemThread.start(name: name) { self.run() } }
    }

    deinit {
        pthread_cond_destroy(wake)
        pthread_mutex_destroy(mutex)
        wake.deallocate()
        mutex.deallocate()
    }

    /// Queues `work` for the threads, which run it in order of arrival.
    ///
    /// - Returns: False if the queue is full or closed; `work` then does not run.
    package func submit(_ work: @escaping Work) -> Bool {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        guard !isClosing, !threads.isEmpty, queue.count < limit else { return false }
        queue.append(work)
        pthread_cond_signal(wake)
        return true
    }

    /// Refuses further work, waits for queued work, and ends the threads. Blocks; must not be called from these threads.
    package func close() {
        pthread_mutex_lock(mutex)
        isClosing = true
        let ending = threads
        threads = []
        pthread_cond_broadcast(wake)
        pthread_mutex_unlock(mutex)
        for thread in ending { thread.join() }
    }

    private func run() {
        while let work = next() { work() }
    }

    private func next() -> Work? {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while queue.isEmpty {
            if isClosing { return nil }
            pthread_cond_wait(wake, mutex)
        }
        return queue.popFirst()
    }
}
