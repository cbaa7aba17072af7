internal import CLinux
internal import Glibc

/// A counting semaphore for threads (POSIX `sem_t`). Waiting blocks the thread, so tasks must not wait on one.
package final class Semaphore: Sendable {
    private nonisolated(unsafe) let handle: UnsafeMutablePointer<sem_t>

    /// - Parameter value: The initial count.
    package init(value: UInt32 = 0) {
        handle = .allocate(capacity: 1)
        sem_init(handle, 0, value)
    }

    deinit {
        sem_destroy(handle)
        handle.deallocate()
    }

    /// Decrements the count, and waits before that while it is 0.
    package func wait() {
        while sem_wait(handle) != 0 && errno == EINTR {}
    }

    /// Decrements the count as ``wait()`` does, but waits no longer than `limit`.
    ///
    /// - Returns: Whether the count was decremented.
    package func wait(for limit: Duration) -> Bool {
        // A day is longer than any caller waits, and its nanoseconds are in range.
        let (seconds, attoseconds) = max(.zero, min(limit, .seconds(86_400))).components
        return clinux_semaphore_wait(handle, seconds * 1_000_000_000 + attoseconds / 1_000_000_000) == 0
    }

    /// Increments the count, which lets one waiting thread continue.
    package func signal() {
        sem_post(handle)
    }
}
