internal import Glibc
internal import SystemIO

/// A thread that does the same work again and again: after each interval, and at once when it is woken.
///
/// `@unchecked Sendable`: all state is reached under `mutex` only; mutex and condition live at fixed addresses until
/// `deinit`, which cannot come before the thread, which holds this object, has ended.
final class RepeatingThread: @unchecked Sendable {
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let wakeUp = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private let interval: Int
    private var isWoken = false
    private var isClosing = false
    private var thread: SystemThread?

    /// - Parameter interval: Milliseconds of rest between two rounds.
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

    /// Begins; the first round comes at once. To be called once.
    ///
    /// - Parameter name: As `top` shows it, at most 15 bytes.
    func start(name: String, _ round: @escaping @Sendable () -> Void) {
        let thread = SystemThread.start(name: name) {
            repeat { round() } while self.rest()
        }
        pthread_mutex_lock(mutex)
        self.thread = thread
        pthread_mutex_unlock(mutex)
    }

    /// Has the next round begin now, or right after the one that is going on.
    func wake() {
        pthread_mutex_lock(mutex)
        isWoken = true
        pthread_cond_signal(wakeUp)
        pthread_mutex_unlock(mutex)
    }

    /// True once ``close()`` was called: a long round should end.
    var isEnding: Bool {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return isClosing
    }

    /// Ends the thread after its round. Blocks; not to be called from it.
    func close() {
        pthread_mutex_lock(mutex)
        isClosing = true
        let ending = thread
        thread = nil
        pthread_cond_signal(wakeUp)
        pthread_mutex_unlock(mutex)
        ending?.join()
    }

    /// Waits; false when it is time to end.
    private func rest() -> Bool {
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
