internal import Fetch
internal import Sandbox
internal import Synchronization

/// Admission control for misses. It is asked before a fetch, so that work that cannot be done is refused at once and costs
/// nothing.
///
/// It bounds jobs (being fetched, waiting for a worker, or running) and the bytes of sources in memory; a source that is still
/// being fetched counts with the largest allowed size. A job takes as many slots as it is expected to cost more than a conversion
/// to H.264, and one that costs more than a limit allows is admitted alone. Background work gets at most half of the slots. One origin gets at most
/// three quarters of them while its sources are being fetched, so that a slow origin does not block the others.
///
/// Any thread; the lock is held for a few additions.
package final class Admission: Sendable {
    private struct State {
        /// Slots taken.
        var jobs = 0
        /// Those of background work.
        var background = 0
        var bytes = 0
        /// Slots by the origin of a fetch.
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
    ///   - cost: The slots that the job takes; see ``Rendition/cost``.
    /// - Throws: ``RenditionError/overloaded(cause:)`` if a limit is reached.
    func admit(_ origin: Origin?, bytes: Int, cost: Int = 1, urgency: Urgency) throws(RenditionError) -> AdmissionSlot {
        let isAdmitted = state.withLock { state in
            let limits = state.limits
            guard Self.fits(cost, beside: state.jobs, in: limits.jobs),
                state.bytes == 0 || state.bytes + bytes <= limits.bytes
            else { return false }
            if urgency.isBackground, !Self.fits(cost, beside: state.background, in: limits.jobsInBackground) { return false }
            if let origin, !Self.fits(cost, beside: state.fetching[origin, default: 0], in: limits.jobsPerOrigin) {
                return false
            }
            state.jobs += cost
            state.bytes += bytes
            if urgency.isBackground { state.background += cost }
            if let origin { state.fetching[origin, default: 0] += cost }
            return true
        }
        guard isAdmitted else { throw .overloaded(cause: nil) }
        return AdmissionSlot(self, origin, bytes: bytes, cost: cost, isBackground: urgency.isBackground)
    }

    /// Whether a job has room beside others. Where there are none, it does, so that no limit keeps a job out without end.
    private static func fits(_ cost: Int, beside taken: Int, in limit: Int) -> Bool {
        taken + cost <= limit || (taken == 0 && limit > 0)
    }

    /// Whether a slot is free.
    var hasCapacity: Bool { state.withLock { $0.jobs < $0.limits.jobs } }

    /// Slots taken and bytes accounted for.
    var load: (jobs: Int, bytes: Int) { state.withLock { ($0.jobs, $0.bytes) } }

    fileprivate func fetchEnded(_ origin: Origin?, cost: Int) {
        state.withLock { state in
            guard let origin, let count = state.fetching[origin] else { return }
            state.fetching[origin] = count > cost ? count - cost : nil
        }
    }

    fileprivate func releaseJob(cost: Int, isBackground: Bool) {
        state.withLock { state in
            state.jobs -= cost
            if isBackground { state.background -= cost }
        }
    }

    fileprivate func release(bytes: Int) {
        state.withLock { $0.bytes -= bytes }
    }
}

/// A slot of ``Admission``. Releasing the last reference returns it, however the work ended.
package final class AdmissionSlot: Sendable {
    /// The part for the source's bytes. Readers of a source that outlive its job hold it, so that the bytes stay accounted for.
    let memory: AdmittedMemory
    private let admission: Admission
    private let cost: Int
    private let isBackground: Bool
    /// The origin of a fetch that has not ended.
    private let origin: Mutex<Admission.Origin?>

    fileprivate init(_ admission: Admission, _ origin: Admission.Origin?, bytes: Int, cost: Int, isBackground: Bool) {
        self.admission = admission
        self.cost = cost
        self.isBackground = isBackground
        self.origin = Mutex(origin)
        memory = AdmittedMemory(admission, bytes: bytes)
    }

    /// Records that the source has been fetched and how large it is, at most the size that was admitted.
    func sourceArrived(bytes: Int) {
        endFetch()
        memory.shrink(to: bytes)
    }

    private func endFetch() {
        let ended = origin.withLock { $0.take() }
        admission.fetchEnded(ended, cost: cost)
    }

    deinit {
        endFetch()
        admission.releaseJob(cost: cost, isBackground: isBackground)
    }
}

/// The bytes of a source in memory that ``Admission`` accounts for, until the last reference is released.
final class AdmittedMemory: Sendable {
    private let admission: Admission
    private let bytes: Mutex<Int>

    fileprivate init(_ admission: Admission, bytes: Int) {
        self.admission = admission
        self.bytes = Mutex(bytes)
    }

    /// Returns what is not needed.
    fileprivate func shrink(to count: Int) {
        let unused = bytes.withLock { bytes in
            defer { bytes = count }
            return bytes - count
        }
        admission.release(bytes: unused)
    }

    deinit {
        admission.release(bytes: bytes.withLock { $0 })
    }
}
