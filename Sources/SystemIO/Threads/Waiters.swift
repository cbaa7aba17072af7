internal import Synchronization

/// Tasks that wait for conditions. The owner keeps the state and calls ``notify()`` after each change. Any thread.
package final class Waiters: Sendable {
    private struct State {
        var waiting: [Int: CheckedContinuation<Void, Never>] = [:]
        var lastNumber = 0
    }

    private let state = Mutex(State())

    package init() {}

    /// Makes all waiting tasks check their conditions again.
    package func notify() {
        let waiting = state.withLock { state in
            defer { state.waiting = [:] }
            return state.waiting.sorted { $0.key < $1.key }
        }
        for (_, continuation) in waiting { continuation.resume() }
    }

    /// Suspends until the condition holds, `limit` passes or the task is cancelled.
    ///
    /// - Parameters:
    ///   - time: Provides the timer for the limit.
    ///   - isMet: The condition. Not called again after it returned true.
    package func wait(
        within limit: Duration? = nil, by time: TimeSource = .system, until isMet: () -> Bool
    ) async {
        if isMet() { return }
        let number = state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
        let isExpired = Atomic(false)
        var isOver = false
        var timer: (any AnyObject & Sendable)?
        while !isOver, !Task.isCancelled, !isExpired.load(ordering: .acquiring) {
            await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in
                    state.withLock { $0.waiting[number] = continuation }
                    // Started after the registration: otherwise a short limit could expire before there is a waiter to resume.
                    if timer == nil, let limit {
                        timer = time.after(limit) { [weak self] in
                            isExpired.store(true, ordering: .releasing)
                            self?.resume(number)
                        }
                    }
                    // A change, expiry or cancellation before the registration found no waiter to resume.
                    isOver = isMet()
                    if isOver || Task.isCancelled || isExpired.load(ordering: .acquiring) { resume(number) }
                }
            } onCancel: {
                resume(number)
            }
        }
        withExtendedLifetime(timer) {}
    }

    private func resume(_ number: Int) {
        state.withLock { $0.waiting.removeValue(forKey: number) }?.resume()
    }
}

/// A signal for which one task waits with a timeout. A signal without a waiter is kept for the next wait.
///
/// Any thread may signal; one task at a time may wait.
package final class AsyncSignal: Sendable {
    private let isSignalled = Atomic(false)
    private let waiters = Waiters()

    package init() {}

    /// Ends the current wait, or the next one.
    package func signal() {
        isSignalled.store(true, ordering: .releasing)
        waiters.notify()
    }

    /// Suspends until a signal arrives, `limit` passes or the task is cancelled.
    ///
    /// - Parameter time: Provides the timer for the limit.
    /// - Returns: Whether there was a signal.
    @discardableResult
    package func wait(for limit: Duration, _ time: TimeSource = .system) async -> Bool {
        var isOver = false
        await waiters.wait(within: limit, by: time) {
            isOver = isSignalled.exchange(false, ordering: .acquiringAndReleasing)
            return isOver
        }
        return isOver
    }
}
