internal import Synchronization
internal import SystemIO

/// Holds up requests after a start until this node has applied the purges that it missed, for a bounded time.
///
/// A node that works alone has an open gate. Any thread.
package final class CatchUpGate: Sendable {
    private let opened: Atomic<Bool>
    private let waiters = Waiters()
    private let start = ContinuousClock.now

    /// - Parameter isOpen: Whether there is nothing to wait for.
    package init(isOpen: Bool) {
        opened = Atomic(isOpen)
    }

    package var isOpen: Bool { opened.load(ordering: .acquiring) }

    /// Ends all waits.
    package func open() {
        opened.store(true, ordering: .releasing)
        waiters.notify()
    }

    /// Suspends until the gate is open, but no longer than until `limit` after the start, or until the task is cancelled.
    package func wait(until limit: Duration) async {
        guard !isOpen else { return }
        let left = limit - (ContinuousClock.now - start)
        if left > .zero { await waiters.wait(within: left) { isOpen } }
    }
}
