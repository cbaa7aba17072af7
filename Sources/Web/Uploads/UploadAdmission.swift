internal import Synchronization
internal import SystemIO

/// Admission control of uploads: limits their number and the memory of their bytes.
///
/// An upload reserves memory as its bytes arrive, not by its `Content-Length`, so a slow client holds only the memory of the
/// bytes that it has sent. One client network gets at most a quarter of the uploads and half of the bytes, so that it cannot
/// exclude others. The HTTP engine limits the duration of a body (`server.body_timeout`).
///
/// Any thread; the lock is held for a few additions.
package final class UploadAdmission: Sendable {
    /// The limits, which a reload may change.
    package struct Limits: Sendable, Equatable {
        /// Concurrent uploads: those that are arriving, and those whose response is not ready.
        package var uploads: Int
        /// The bytes of all concurrent uploads.
        package var bytes: Int

        package init(uploads: Int, bytes: Int) {
            self.uploads = uploads
            self.bytes = bytes
        }

        var uploadsPerClient: Int { max(1, uploads / 4) }
        var bytesPerClient: Int { max(1, bytes / 2) }
    }

    fileprivate struct Usage {
        var uploads = 0
        var bytes = 0
    }

    private struct State {
        var limits: Limits
        var total = Usage()
        var clients: [ClientNetwork: Usage] = [:]
    }

    private let state: Mutex<State>

    package init(_ limits: Limits) {
        state = Mutex(State(limits: limits))
    }

    /// Replaces the limits. Admitted uploads keep their reservations.
    package func setLimits(_ limits: Limits) {
        state.withLock { $0.limits = limits }
    }

    /// The number of admitted uploads, and the bytes that they have reserved.
    var load: (uploads: Int, bytes: Int) { state.withLock { ($0.total.uploads, $0.total.bytes) } }

    /// Admits an upload before its body arrives. Returns nil if the limit on uploads is reached, in total or for the client.
    ///
    /// - Parameter client: Nil for an unknown client (a Unix socket without a trusted proxy), which only the totals limit.
    func admit(_ client: ClientNetwork?) -> UploadReservation? {
        let isAdmitted = state.withLock { state in
            guard state.total.uploads < state.limits.uploads else { return false }
            if let client {
                guard state.clients[client]?.uploads ?? 0 < state.limits.uploadsPerClient else { return false }
                state.clients[client, default: Usage()].uploads += 1
            }
            state.total.uploads += 1
            return true
        }
        return isAdmitted ? UploadReservation(self, client) : nil
    }

    /// Reserves memory for bytes that have arrived. A single upload is never refused: `sources.max_bytes` limits its size.
    fileprivate func reserve(_ bytes: Int, _ client: ClientNetwork?) -> Bool {
        state.withLock { state in
            let isAlone = state.total.uploads == 1
            guard isAlone || state.total.bytes + bytes <= state.limits.bytes else { return false }
            if let client {
                let isOnlyOne = state.clients[client]?.uploads == 1
                let used = state.clients[client]?.bytes ?? 0
                guard isOnlyOne || used + bytes <= state.limits.bytesPerClient else { return false }
                state.clients[client, default: Usage()].bytes += bytes
            }
            state.total.bytes += bytes
            return true
        }
    }

    fileprivate func release(_ bytes: Int, _ client: ClientNetwork?) {
        state.withLock { state in
            state.total.uploads -= 1
            state.total.bytes -= bytes
            guard let client, var usage = state.clients[client] else { return }
            usage.uploads -= 1
            usage.bytes -= bytes
            state.clients[client] = usage.uploads > 0 ? usage : nil
        }
    }
}

/// The reservation of one upload. It is released with its last reference, however the upload ends.
final class UploadReservation: Sendable {
    private let admission: UploadAdmission
    private let client: ClientNetwork?
    private let bytes = Atomic(0)
    private let refusal = Mutex<(@Sendable (Problem) -> Void)?>(nil)

    fileprivate init(_ admission: UploadAdmission, _ client: ClientNetwork?) {
        self.admission = admission
        self.client = client
    }

    /// Sets the action that is called once, with the problem, if memory is refused.
    func onRefusal(_ action: @escaping @Sendable (Problem) -> Void) {
        refusal.withLock { $0 = action }
    }

    /// Reserves memory for the next bytes of the upload.
    ///
    /// - Throws: ``Problem/overloaded`` if the limit is reached.
    func reserve(_ count: Int) throws(Problem) {
        guard admission.reserve(count, client) else { throw refused(.overloaded) }
        bytes.wrappingAdd(count, ordering: .relaxed)
    }

    /// Returns the problem of an upload for which the kernel has no memory or descriptor.
    func refused(by error: SystemError) -> Problem {
        var problem = Problem.overloaded
        (problem.detail, problem.cause) = ("The server cannot take the file now.", error.description)
        problem.isServerFault = true
        return refused(problem)
    }

    private func refused(_ problem: Problem) -> Problem {
        refusal.withLock { $0.take() }?(problem)
        return problem
    }

    deinit {
        admission.release(bytes.load(ordering: .relaxed), client)
    }
}
