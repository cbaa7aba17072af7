internal import Glibc
internal import Synchronization
internal import SystemIO

/// Ends a job from another thread, whether it runs or is yet to begin. Thread-safe.
package final class JobCancellation: Sendable {
    private struct State {
        var isCancelled = false
        /// The server's end of the running worker's guard.
        var guardian: SharedDescriptor?
    }

    private let state = Mutex(State())

    package init() {}

    package var isCancelled: Bool { state.withLock { $0.isCancelled } }

    /// Ends the job: its worker is killed, wherever it stands.
    package func cancel() {
        state.withLock { state in
            state.isCancelled = true
            if let guardian = state.guardian { Self.abandon(guardian) }
        }
    }

    /// Says by which guard the job can be ended from now on; nil when there is none any more.
    func attach(_ guardian: SharedDescriptor?) {
        state.withLock { state in
            state.guardian = guardian
            if state.isCancelled, let guardian { Self.abandon(guardian) }
        }
    }

    /// Has the zygote kill the guard's worker. How it ended still comes.
    static func abandon(_ guardian: SharedDescriptor) {
        shutdown(guardian.number, Int32(SHUT_WR))
    }
}
