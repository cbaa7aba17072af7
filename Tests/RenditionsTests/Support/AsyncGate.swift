import Synchronization

/// Holds tasks until a test opens it.
final class AsyncGate: Sendable {
    private struct State {
        var isOpen = false
        var passed = 0
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    /// How many have come to it so far.
    var count: Int { state.withLock { $0.passed } }

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

    func open() {
        let waiting = state.withLock { state in
            state.isOpen = true
            defer { state.waiting = [] }
            return state.waiting
        }
        waiting.forEach { $0.resume() }
    }
}

/// Waits until the condition holds; it is for the test to see that it does.
func eventually(_ condition: () async throws -> Bool) async rethrows -> Bool {
    let deadline = ContinuousClock.now + .seconds(30)
    while ContinuousClock.now < deadline {
        if try await condition() { return true }
        do { try await Task.sleep(for: .milliseconds(2)) } catch { return false }
    }
    return false
}
