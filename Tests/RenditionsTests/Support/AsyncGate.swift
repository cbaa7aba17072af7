import Synchronization

/// A gate that suspends tasks until a test opens it.
final class AsyncGate: Sendable {
    private struct State {
        var isOpen = false
        var passed = 0
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    /// The number of tasks that have arrived so far.
    var count: Int { state.withLock { $0.passed } }

    /// Suspends until the gate is open.
    func pass() async {
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
    func open() {
        let waiting = state.withLock { state in
            state.isOpen = true
            defer { state.waiting = [] }
            return state.waiting
        }
        waiting.forEach { $0.resume() }
    }

    /// Suspends later tasks again.
    func close() {
        state.withLock { $0.isOpen = false }
    }
}
