internal import Synchronization

/// A thread that repeats a round of work: after each interval, and at once when it is woken. Any thread.
package final class RepeatingThread: Sendable {
    private let interval: Duration
    private let wakeUps = Semaphore()
    /// Whether a wake-up is pending for the next round.
    private let isWoken = Atomic(false)
    private let closing = Atomic(false)
    private let thread = Mutex<SystemThread?>(nil)

    package init(every interval: Duration) {
        self.interval = interval
    }

    /// Starts the thread, which begins the first round at once. Must be called once.
    ///
    /// - Parameter name: The thread's name in `top`, at most 15 bytes.
    /// - Returns: False if the system cannot create a thread.
    @discardableResult
    package func start(name: String, _ round: @escaping @Sendable () -> Void) -> Bool {
        let started = SystemThread.start(name: name) {
            repeat {
                round()
                _ = self.wakeUps.wait(for: self.interval)
                // Cleared before the round, which then sees everything done before a coalesced wake-up.
                _ = self.isWoken.exchange(false, ordering: .acquiringAndReleasing)
            } while !self.isEnding
        }
        thread.withLock { $0 = started }
        return started != nil
    }

    /// Starts the next round now, or after the current one.
    package func wake() {
        if !isWoken.exchange(true, ordering: .acquiringAndReleasing) { wakeUps.signal() }
    }

    /// Whether ``close()`` was called. A long round should then end.
    package var isEnding: Bool { closing.load(ordering: .acquiring) }

    /// Ends the thread after its current round. Blocks; must not be called from the thread.
    package func close() {
        closing.store(true, ordering: .releasing)
        wakeUps.signal()
        thread.withLock { $0.take() }?.join()
    }
}
