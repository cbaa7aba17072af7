internal import Glibc

/// A counting semaphore on which threads wait (POSIX `sem_t`). Not for tasks: it blocks.
package final class Semaphore: Sendable {
    private nonisolated(unsafe) let handle: UnsafeMutablePointer<sem_t>

    /// - Parameter value: How many may pass before the first ``signal()``.
    package init(value: UInt32 = 0) {
        handle = .allocate(capacity: 1)
        sem_init(handle, 0, value)
    }

    deinit {
        sem_destroy(handle)
        handle.deallocate()
    }

    /// Passes, or waits until it may.
    package func wait() {
        while sem_wait(handle) != 0 && errno == EINTR {}
    }

    /// Lets one more pass.
    package func signal() {
        sem_post(handle)
    }
}
