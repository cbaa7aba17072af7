internal import Synchronization

/// The bytes of a source in memory that ``Admission`` accounts for, until the last reference is released. Any thread.
final class AdmittedMemory: Sendable {
    private struct State {
        /// The owner whose shares the bytes count towards while jobs use them.
        var owner: Admission.Owner
        var bytes: Int
        /// Jobs that use the source and have not ended.
        var jobs = 1
        var release: [@Sendable () -> Void] = []
        /// The number under which ``Admission`` lists the bytes while only readers hold them.
        var number: Int?
    }

    private let admission: Admission
    private let state: Mutex<State>

    /// - Parameter bytes: The bytes that ``Admission`` has reserved.
    init(_ admission: Admission, bytes: Int, _ owner: Admission.Owner) {
        self.admission = admission
        state = Mutex(State(owner: owner.withoutOrigin, bytes: bytes))
    }

    /// Takes over the bytes that ``Admission`` has reserved for a fetch.
    func add(reserved count: Int, _ owner: Admission.Owner) {
        state.withLock { state in
            state.owner = owner.withoutOrigin
            state.bytes += count
        }
    }

    /// Accounts for the size of the source once it is known.
    func set(to count: Int) {
        let (change, owner) = state.withLock { state in
            defer { state.bytes = count }
            return (count - state.bytes, state.owner)
        }
        admission.change(bytes: change, owner)
    }

    /// Returns all bytes, because the memory of another job accounts for the source; no effect if this one has readers.
    func leaveToOtherJob() {
        let (unused, owner) = state.withLock { state in
            guard state.release.isEmpty else { return (0, state.owner) }
            defer { state.bytes = 0 }
            return (state.bytes, state.owner)
        }
        admission.change(bytes: -unused, owner)
    }

    /// Records how to end readers that outlive the jobs.
    func addReaders(_ release: @escaping @Sendable () -> Void) {
        state.withLock { $0.release.append(release) }
    }

    /// Records that another job uses the source; returns false if the bytes were released because only readers held them.
    func addJob() -> Bool {
        state.withLock { state in
            if let number = state.number {
                guard let bytes = admission.readersGotJob(number, state.owner) else { return false }
                state.number = nil
                state.bytes = bytes
            }
            state.jobs += 1
            return true
        }
    }

    /// Notes a job's end. After the last job, only readers keep the bytes.
    func endJob() {
        state.withLock { state in
            state.jobs -= 1
            guard state.jobs == 0, !state.release.isEmpty else { return }
            state.number = admission.leaveToReaders(bytes: state.bytes, state.owner) { [release = state.release] in
                for end in release { end() }
            }
            state.bytes = 0
        }
    }

    deinit {
        let (bytes, number, owner) = state.withLock { ($0.bytes, $0.number, $0.owner) }
        admission.change(bytes: -bytes, owner)
        if let number { admission.readersEnded(number) }
    }
}
