internal import Glibc
internal import Synchronization
internal import SystemIO

/// Cancels a job, before or while it runs. Thread-safe.
package final class JobCancellation: Sendable {
    private struct State {
        var isCancelled = false
        /// The server's end of the running worker's guardian socket.
        var guardian: SharedDescriptor?
    }

    private let state = Mutex(State())

    package init() {}

    package var isCancelled: Bool { state.withLock { $0.isCancelled } }

    /// Cancels the job. A running worker is killed.
    package func cancel() {
        state.withLock { state in
            state.isCancelled = true
            if let guardian = state.guardian { Self.abandon(guardian) }
        }
    }

    /// Sets the socket by which the running worker can be killed; nil once it has ended.
    func attach(_ guardian: SharedDescriptor?) {
        state.withLock { state in
            state.guardian = guardian
            if state.isCancelled, let guardian { Self.abandon(guardian) }
        }
    }

    /// Makes the zygote kill the worker behind a guardian socket. The report of its end still arrives.
    static func abandon(_ guardian: SharedDescriptor) {
        shutdown(guardian.number, Int32(SHUT_WR))
    }
}
