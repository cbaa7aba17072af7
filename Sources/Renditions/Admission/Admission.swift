internal import Fetch
internal import Sandbox
internal import Synchronization

/// Admission control for misses. It is asked before a fetch, so that work that cannot be done is refused at once and costs
/// nothing.
///
/// It bounds jobs (being fetched, waiting for a worker, or running) and the bytes of sources in memory; a source that is still
/// being fetched counts with the largest allowed size. Background work gets at most half of the slots. One origin gets at most
/// three quarters of them while its sources are being fetched, so that a slow origin does not block the others.
///
/// Any thread; the lock is held for a few additions.
package final class Admission: Sendable {
    private struct State {
        var jobs = 0
        var background = 0
        var bytes = 0
        var fetching: [Origin: Int] = [:]
        var limits: Limits
    }

    private struct Limits {
        let jobs: Int
        let bytes: Int

        /// Below this number, reserving slots for other origins would leave them unused.
        static let smallestOriginShare = 8

        var jobsInBackground: Int { max(1, jobs / 2) }
        var jobsPerOrigin: Int { max(Self.smallestOriginShare, jobs - jobs / 4) }
    }

    /// The host and port of a fetch.
    struct Origin: Hashable, Sendable {
        let host: String
        let port: Int

        init(_ url: SourceURL) {
            host = url.host
            port = url.port
        }
    }

    private let state: Mutex<State>

    /// - Parameters:
    ///   - jobs: The number of slots: running jobs and queued ones.
    ///   - bytes: Bytes of sources in memory. A single source is always admitted, whatever its size.
    package init(jobs: Int, bytes: Int) {
        state = Mutex(State(limits: Limits(jobs: jobs, bytes: bytes)))
    }

    /// Changes the limits. Admitted work goes on; nothing more is admitted until the new limits allow it.
    func setLimits(jobs: Int, bytes: Int) {
        state.withLock { $0.limits = Limits(jobs: jobs, bytes: bytes) }
    }

    /// Takes a slot, which its holder has until it releases the last reference.
    ///
    /// - Parameters:
    ///   - origin: The origin of the fetch; nil for an upload.
    ///   - bytes: The largest size that the source may have.
    /// - Throws: ``RenditionError/overloaded(cause:)`` if a limit is reached.
    func admit(_ origin: Origin?, bytes: Int, urgency: Urgency) throws(RenditionError) -> AdmissionSlot {
        let isAdmitted = state.withLock { state in
            let limits = state.limits
            guard state.jobs < limits.jobs, state.bytes == 0 || state.bytes + bytes <= limits.bytes else { return false }
            if urgency.isBackground, state.background >= limits.jobsInBackground { return false }
            if let origin, state.fetching[origin, default: 0] >= limits.jobsPerOrigin { return false }
            state.jobs += 1
            state.bytes += bytes
            if urgency.isBackground { state.background += 1 }
            if let origin { state.fetching[origin, default: 0] += 1 }
            return true
        }
        guard isAdmitted else { throw .overloaded(cause: nil) }
        return AdmissionSlot(self, origin, bytes: bytes, isBackground: urgency.isBackground)
    }

    /// Whether a slot is free.
    var hasCapacity: Bool { state.withLock { $0.jobs < $0.limits.jobs } }

    /// Slots taken and bytes accounted for.
    var load: (jobs: Int, bytes: Int) { state.withLock { ($0.jobs, $0.bytes) } }

    fileprivate func fetchEnded(_ origin: Origin?, unusedBytes: Int) {
        state.withLock { state in
            state.bytes -= unusedBytes
            guard let origin, let count = state.fetching[origin] else { return }
            state.fetching[origin] = count > 1 ? count - 1 : nil
        }
    }

    fileprivate func release(bytes: Int, isBackground: Bool) {
        state.withLock { state in
            state.jobs -= 1
            state.bytes -= bytes
            if isBackground { state.background -= 1 }
        }
    }
}

/// A slot of ``Admission``. Releasing the last reference returns it, however the work ended.
package final class AdmissionSlot: Sendable {
    private struct State {
        var origin: Admission.Origin?
        var bytes: Int
    }

    private let admission: Admission
    private let isBackground: Bool
    private let state: Mutex<State>

    fileprivate init(_ admission: Admission, _ origin: Admission.Origin?, bytes: Int, isBackground: Bool) {
        self.admission = admission
        self.isBackground = isBackground
        state = Mutex(State(origin: origin, bytes: bytes))
    }

    /// Records that the source has been fetched and how large it is, at most the size that was admitted.
    func sourceArrived(bytes: Int) {
        state.withLock { state in
            admission.fetchEnded(state.origin, unusedBytes: state.bytes - bytes)
            state = State(origin: nil, bytes: bytes)
        }
    }

    deinit {
        state.withLock { state in
            admission.fetchEnded(state.origin, unusedBytes: 0)
            admission.release(bytes: state.bytes, isBackground: isBackground)
        }
    }
}
