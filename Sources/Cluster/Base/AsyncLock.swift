internal import Synchronization

/// Runs pieces of asynchronous work one after the other, in order of arrival.
final class AsyncLock: Sendable {
    private struct State {
        var isHeld = false
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    func run<Value: Sendable>(_ work: () async -> Value) async -> Value {
        await withCheckedContinuation { continuation in
            let isFree = state.withLock { state in
                defer { state.isHeld = true }
                if state.isHeld { state.waiters.append(continuation) }
                return !state.isHeld
            }
            if isFree { continuation.resume() }
        }
        let value = await work()
        let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
            if state.waiters.isEmpty {
                state.isHeld = false
                return nil
            }
            return state.waiters.removeFirst()
        }
        next?.resume()
        return value
    }
}
