internal import Fetch
internal import Sandbox
internal import Synchronization

/// Who may begin a miss: asked before anything is fetched, so that what cannot be done is refused at once and costs nothing.
///
/// Bounded in jobs (being fetched, waiting for a worker or at one) and in bytes of GIFs that they hold in memory, where a GIF
/// that is still on its way counts as the largest that is allowed. Work that nobody waits for gets at most half of the
/// places, and one origin that is being fetched from leaves a quarter of them to others, so that a slow one cannot keep all
/// out. Any thread; the lock is held for a few additions.
package final class MissAdmission: Sendable {
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

        var jobsInBackground: Int { max(1, jobs / 2) }
        var jobsPerOrigin: Int { max(MissAdmission.fewestPerOrigin, jobs - jobs / 4) }
    }

    /// The host and port that a fetch goes to.
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
    ///   - jobs: Places in all: at workers and waiting for them.
    ///   - bytes: Of GIFs held in memory. A single one is always let in, however large it may be.
    package init(jobs: Int, bytes: Int) {
        state = Mutex(State(limits: Limits(jobs: jobs, bytes: bytes)))
    }

    /// Changes the limits. Work in progress keeps its share; nothing more is admitted until the new limits allow it.
    func resize(jobs: Int, bytes: Int) {
        state.withLock { $0.limits = Limits(jobs: jobs, bytes: bytes) }
    }

    /// With so few places, sharing them out among origins would only keep them empty.
    private static let fewestPerOrigin = 8

    /// A place, until it is let go; nil when there is none.
    ///
    /// - Parameters:
    ///   - origin: Where the GIF is to be fetched from; nil for one that is here or on its way from the client.
    ///   - bytes: That it may have.
    func admit(_ origin: Origin?, bytes: Int, urgency: Urgency) -> MissPlace? {
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
        return isAdmitted ? MissPlace(self, origin, bytes: bytes, isBackground: urgency.isBackground) : nil
    }

    /// Whether a place is free.
    var hasRoom: Bool { state.withLock { $0.jobs < $0.limits.jobs } }

    /// Places taken and bytes accounted for.
    var load: (jobs: Int, bytes: Int) { state.withLock { ($0.jobs, $0.bytes) } }

    fileprivate func fetched(_ origin: Origin?, less bytes: Int) {
        state.withLock { state in
            state.bytes -= bytes
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

/// A place among the misses under way. Letting go of the last reference gives it back, whatever way the work ended.
package final class MissPlace: Sendable {
    private struct State {
        var origin: MissAdmission.Origin?
        var bytes: Int
    }

    private let admission: MissAdmission
    private let isBackground: Bool
    private let state: Mutex<State>

    fileprivate init(_ admission: MissAdmission, _ origin: MissAdmission.Origin?, bytes: Int, isBackground: Bool) {
        self.admission = admission
        self.isBackground = isBackground
        state = Mutex(State(origin: origin, bytes: bytes))
    }

    /// Notes that the GIF is here and has so many bytes, at most as many as it was admitted with.
    func settle(bytes: Int) {
        state.withLock { state in
            admission.fetched(state.origin, less: state.bytes - bytes)
            state = State(origin: nil, bytes: bytes)
        }
    }

    deinit {
        state.withLock { state in
            admission.fetched(state.origin, less: 0)
            admission.release(bytes: state.bytes, isBackground: isBackground)
        }
    }
}
