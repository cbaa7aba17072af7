internal import Glibc
internal import SystemIO

/// A thread that repeats a round of work: after each interval, and at once when it is woken.
///
/// `@unchecked Sendable`: all state is accessed with `mutex` locked only. Mutex and condition have fixed addresses until `deinit`,
/// which runs after the thread has ended, because the thread holds this object.
final class RepeatingThread: @unchecked Sendable {
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let wakeUp = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private let interval: Int
    private var isWoken = false
    private var isClosing = false
    private var thread: SystemThread?

    /// - Parameter interval: Milliseconds between two rounds.
    init(interval: Int) {
        self.interval = interval
        pthread_mutex_init(mutex, nil)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        // Not the wall clock, which may be set.
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(wakeUp, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_cond_destroy(wakeUp)
        pthread_mutex_destroy(mutex)
        wakeUp.deallocate()
        mutex.deallocate()
    }

    /// Starts the thread, which begins the first round at once. Must be called once.
    ///
    /// - Parameter name: The thread's name in `top`, at most 15 bytes.
    /// - Returns: False if the machine has no thread.
    @discardableResult
    func start(name: String, _ round: @escaping @Sendable () -> Void) -> Bool {
        let thread = SystemThread.start(name: name) {
            repeat { round() } while self.waitForNextRound()
        }
        pthread_mutex_lock(mutex)
        self.thread = thread
        pthread_mutex_unlock(mutex)
        return thread != nil
    }

    /// Starts the next round now, or after the current one.
    func wake() {
        pthread_mutex_lock(mutex)
        isWoken = true
        pthread_cond_signal(wakeUp)
        pthread_mutex_unlock(mutex)
    }

    /// Whether ``close()`` was called. A long round should then end.
    var isEnding: Bool {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return isClosing
    }

    /// Ends the thread after its current round. Blocks; must not be called from the thread.
    func close() {
        pthread_mutex_lock(mutex)
        isClosing = true
        let ending = thread
        thread = nil
        pthread_cond_signal(wakeUp)
        pthread_mutex_unlock(mutex)
        ending?.join()
    }

    /// Waits for the interval or a wake-up. Returns false if the thread has to end.
    private func waitForNextRound() -> Bool {
        var deadline = timespec()
        clock_gettime(CLOCK_MONOTONIC, &deadline)
        let nanoseconds = deadline.tv_nsec + (interval % 1000) * 1_000_000
        deadline.tv_sec += interval / 1000 + nanoseconds / 1_000_000_000
        deadline.tv_nsec = nanoseconds % 1_000_000_000
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while !isWoken, !isClosing {
            if pthread_cond_timedwait(wakeUp, mutex, &deadline) == ETIMEDOUT { break }
        }
        isWoken = false
        return !isClosing
    }
}
