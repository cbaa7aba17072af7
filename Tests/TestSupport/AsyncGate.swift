import Synchronization

/// A gate that suspends tasks until a test opens it.
package final class AsyncGate: Sendable {
    private struct State {
        var isOpen = false
        var passed = 0
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    package init() {}

    /// The number of tasks that have arrived so far.
    package var count: Int { state.withLock { $0.passed } }

    /// Suspends until the gate is open.
    package func pass() async {
        await withCheckedContinuation { continuation in
            let isOpen = state.withLock { state in
                state.passed += 1
                if !state.isOpen { state.waiting.append(continuation) }
                return state.isOpen
            }
            if isOpen { continuation.resume() }
        }
    }

    /// Resumes the suspended tasks, and lets later ones pass.
    package func open() {
        let waiting = state.withLock { state in
            state.isOpen = true
            defer { state.waiting = [] }
            return state.waiting
        }
        waiting.forEach { $0.resume() }
    }

    /// Suspends later tasks again.
    package func close() {
        state.withLock { $0.isOpen = false }
    }
}
