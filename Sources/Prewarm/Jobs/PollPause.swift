internal import Synchronization

/// The pause of a loop between two polls, which a signal ends early.
///
/// Any thread may signal; one task at a time may wait.
final class PollPause: Sendable {
    private struct State {
        var isSignalled = false
        /// The wait in progress.
        var sleep: Task<Void, Never>?
    }

    private let state = Mutex(State())

    /// Ends the current wait, or the next one.
    func signal() {
        let sleep = state.withLock { state in
            state.isSignalled = true
            return state.sleep
        }
        sleep?.cancel()
    }

    /// Suspends until a signal, for at most `limit`. The caller polls afterwards, so all signals until then count for this wait.
    func wait(for limit: Duration) async {
        let sleep = Task<Void, Never> { _ = try? await Task.sleep(for: limit) }
        let isSignalled = state.withLock { state in
            if !state.isSignalled { state.sleep = sleep }
            return state.isSignalled
        }
        if isSignalled { sleep.cancel() }
        await sleep.value
        state.withLock { $0 = State() }
    }
}
