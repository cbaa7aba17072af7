internal import Glibc

/// A few threads that do blocking work, with a bounded queue before them.
///
/// For what must run neither on Swift's cooperative pool nor on an I/O thread.
///
/// `@unchecked Sendable`: all state is reached under `mutex` only; mutex and condition live at fixed addresses until `deinit`, which cannot come
/// before the threads, each of which holds this object, have ended.
package final class WorkThreads: @unchecked Sendable {
    package typealias Work = @Sendable () -> Void

    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let wake = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private let limit: Int
    /// Work from ``first`` on waits. Entries before it are nil, so that no finished closure keeps what it captured.
    private var queue: [Work?] = []
    private var first = 0
    private var isClosing = false
    private var threads: [SystemThread] = []

    /// - Parameters:
    ///   - count: Threads; they begin at once.
    ///   - limit: Pieces of work that may wait.
    ///   - name: As `top` shows it, at most 15 bytes.
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

    /// Has `work` done by one of the threads, in order of arrival.
    ///
    /// - Returns: False when the queue is full or closed; then `work` is not done.
    package func submit(_ work: @escaping Work) -> Bool {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        guard !isClosing, !threads.isEmpty, queue.count - first < limit else { return false }
        queue.append(work)
        pthread_cond_signal(wake)
        return true
    }

    /// Has `work` done and waits for its result without blocking; nil when the queue is full or closed.
    package func run<Result: Sendable>(_ work: @escaping @Sendable () -> Result) async -> Result? {
        await withCheckedContinuation { continuation in
            if !submit({ continuation.resume(returning: work()) }) { continuation.resume(returning: nil) }
        }
    }

    /// Takes no more work, does what waits, and ends the threads. Blocks; not to be called from one of them.
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
        while first == queue.count {
            if isClosing { return nil }
            pthread_cond_wait(wake, mutex)
        }
        let work = queue[first].take()
        first += 1
        if first == queue.count || first >= 1024 {
            queue.removeFirst(first)
            first = 0
        }
        return work
    }
}
