internal import Synchronization

/// A signal for which one task waits with a limit. One without a waiter is remembered for the next wait.
///
/// Any thread may signal; one task at a time may wait.
package final class AsyncSignal: Sendable {
    private struct State {
        var isSignalled = false
        var number: UInt64 = 0
        var continuation: CheckedContinuation<Void, Never>?
        var timer: (any AnyObject & Sendable)?
    }

    private let state = Mutex(State())

    package init() {}

    /// Ends the current wait, or the next one.
    package func signal() {
        let waiting = state.withLock { state in
            state.isSignalled = state.continuation == nil
            state.timer = nil
            return state.continuation.take()
        }
        waiting?.resume()
    }

    /// Suspends until a signal, for at most `limit`, or until the task is cancelled.
    ///
    /// - Parameter start: Starts the timer of the limit.
    package func wait(for limit: Duration, start: Deadline.Start = Deadline.start) async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let number = state.withLock { state -> UInt64? in
                    state.number += 1
                    if state.isSignalled {
                        state.isSignalled = false
                        return nil
                    }
                    state.continuation = continuation
                    return state.number
                }
                guard let number else { return continuation.resume() }
                let timer = start(limit) { [weak self] in self?.end(number) }
                state.withLock { state in
                    if state.number == number, state.continuation != nil { state.timer = timer }
                }
                // A cancellation before the continuation was stored has ended nothing.
                if Task.isCancelled { end(number) }
            }
        } onCancel: {
            end(nil)
        }
    }

    /// Ends the wait with this number, or any wait if it is nil, without remembering a signal.
    private func end(_ number: UInt64?) {
        let waiting = state.withLock { state -> CheckedContinuation<Void, Never>? in
            guard number == nil || state.number == number else { return nil }
            state.timer = nil
            return state.continuation.take()
        }
        waiting?.resume()
    }
}
