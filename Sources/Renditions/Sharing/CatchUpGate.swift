internal import Synchronization
internal import SystemIO

/// Holds up requests after a start until this node has applied the purges that it missed, for a bounded time.
///
/// A node that works alone has an open gate. Any thread.
package final class CatchUpGate: Sendable {
    private struct State {
        var signals: [Int: AsyncSignal] = [:]
        var lastNumber = 0
    }

    private let opened: Atomic<Bool>
    private let state = Mutex(State())
    private let start = ContinuousClock.now

    /// - Parameter isOpen: Whether there is nothing to wait for.
    package init(isOpen: Bool) {
        opened = Atomic(isOpen)
    }

    package var isOpen: Bool { opened.load(ordering: .acquiring) }

    /// Ends all waits.
    package func open() {
        opened.store(true, ordering: .releasing)
        let signals = state.withLock { state in
            defer { state.signals = [:] }
            return state.signals.values
        }
        for signal in signals { signal.signal() }
    }

    /// Suspends until the gate is open, but no longer than until `limit` after the start, or until the task is cancelled.
    package func wait(until limit: Duration) async {
        guard !isOpen else { return }
        let left = limit - (ContinuousClock.now - start)
        guard left > .zero else { return }
        let signal = AsyncSignal()
        let number = state.withLock { state in
            state.lastNumber += 1
            state.signals[state.lastNumber] = signal
            return state.lastNumber
        }
        // It may have been opened before the signal was registered.
        if !isOpen { await signal.wait(for: left) }
        state.withLock { $0.signals[number] = nil }
    }
}
