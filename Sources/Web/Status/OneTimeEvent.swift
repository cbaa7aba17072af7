internal import Synchronization
internal import SystemIO

/// An event that occurs once, for tasks that wait for it for a limited time. Any thread.
final class OneTimeEvent: Sendable {
    private struct State {
        var hasOccurred = false
        var waiters: [Int: Waiter] = [:]
        var lastWaiter = 0
    }

    private struct Waiter {
        let continuation: CheckedContinuation<Void, Never>
        /// Nil until the waiter is registered.
        var timeout: Deadline?
    }

    private let state = Mutex(State())

    /// Resumes the tasks that wait. Later waits return at once.
    func occur() {
        let waiters = state.withLock { state in
            state.hasOccurred = true
            defer { state.waiters = [:] }
            return Array(state.waiters.values)
        }
        for waiter in waiters { waiter.continuation.resume() }
    }

    /// Suspends until the event, the cancellation of the task, or the end of the interval.
    func wait(within interval: Duration) async {
        let number = state.withLock { state in
            state.lastWaiter += 1
            return state.lastWaiter
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isDue = state.withLock { state in
                    // The cancellation handler may have run before the waiter was registered.
                    if state.hasOccurred || Task.isCancelled { return true }
                    state.waiters[number] = Waiter(continuation: continuation)
                    return false
                }
                if isDue { return continuation.resume() }
                // Not before the registration: a short interval could pass while there is no waiter to resume.
                let timeout = Deadline(after: interval) { [weak self] in self?.resume(number) }
                state.withLock { $0.waiters[number]?.timeout = timeout }
            }
        } onCancel: {
            resume(number)
        }
    }

    private func resume(_ number: Int) {
        state.withLock { $0.waiters.removeValue(forKey: number) }?.continuation.resume()
    }
}
