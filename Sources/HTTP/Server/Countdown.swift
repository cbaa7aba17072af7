internal import Synchronization

/// Lets tasks wait until all threads of a server have ended. Any thread.
final class Countdown: Sendable {
    private struct State {
        var count: Int
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state: Mutex<State>

    init(_ count: Int) {
        state = Mutex(State(count: count))
    }

    func increment() {
        state.withLock { $0.count += 1 }
    }

    func decrement() {
        let ready = state.withLock { state -> [CheckedContinuation<Void, Never>] in
            state.count -= 1
            guard state.count == 0 else { return [] }
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in ready { continuation.resume() }
    }

    /// Returns once the count is 0.
    func wait() async {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                if state.count > 0 { state.waiting.append(continuation) }
                return state.count <= 0
            }
            if isOver { continuation.resume() }
        }
    }
}
