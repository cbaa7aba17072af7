internal import Fetch
internal import Synchronization
internal import SystemIO

/// A slot of ``Admission``. Releasing the last reference returns it, however the work ended.
package final class AdmissionSlot: Sendable {
    /// The memory of the source's bytes. Readers that outlive the job hold it, so that the bytes stay accounted for.
    let memory: AdmittedMemory
    private let admission: Admission
    private let owner: Admission.Owner
    private let cost: Int
    /// The largest size of the source.
    private let maxBytes: Int
    private let fetch: Mutex<FetchState>
    /// Memory that other slots hold, for sources that this job shares.
    private let joined = Mutex<[AdmittedMemory]>([])
    private let kept = Mutex<(any AnyObject & Sendable)?>(nil)

    private enum FetchState {
        case waiting, running(Admission.Owner), ended
    }

    init(_ admission: Admission, _ owner: Admission.Owner, bytes: Int, cost: Int) {
        self.admission = admission
        self.owner = owner
        self.cost = cost
        maxBytes = bytes
        let isUpload = owner.origin == nil
        fetch = Mutex(isUpload ? .ended : .waiting)
        memory = AdmittedMemory(admission, bytes: isUpload ? bytes : 0, owner)
    }

    /// Reserves memory for the largest source, when the fetch begins. A second call has no effect.
    ///
    /// - Parameter clients: The clients that wait for the fetch. The share of one of them suffices, and is charged.
    /// - Returns: False if the fetch has to wait because all memory is in use, or the shares of its clients or its origin.
    func beginFetch(for clients: [ClientNetwork?] = []) -> Bool {
        fetch.withLock { fetch in
            guard case .waiting = fetch else { return true }
            let owners = [owner] + clients.map { Admission.Owner(client: $0, origin: owner.origin) }
            guard let owner = owners.first(where: { admission.beginFetch(bytes: maxBytes, $0) }) else { return false }
            memory.add(reserved: maxBytes, owner)
            fetch = .running(owner)
            return true
        }
    }

    /// Accounts for the bytes of a source until its last job and its last reader have ended.
    ///
    /// Jobs that use one source at the same time account for it once, under the first of them.
    func account(for source: ArrivingSource) {
        guard let held = source.retain(memory) as? AdmittedMemory else { return }
        if held === memory {
            memory.addReaders { [weak source] in source?.cutOff() }
            return
        }
        joined.withLock { joined in
            guard !joined.contains(where: { $0 === held }), held.addJob() else { return }
            joined.append(held)
            memory.leaveToOtherJob()
        }
    }

    /// Records that the source has been fetched and how large it is, at most the size that was admitted.
    func sourceArrived(bytes: Int) {
        endFetch()
        memory.set(to: bytes)
    }

    /// Keeps an object, such as the source in memory, until the slot is returned.
    func keep(_ object: any AnyObject & Sendable) {
        kept.withLock { $0 = object }
    }

    private func endFetch() {
        let earlier = fetch.withLock { fetch in
            defer { fetch = .ended }
            return fetch
        }
        if case .running(let owner) = earlier { admission.endFetch(bytes: maxBytes, owner) }
        if case .ended = earlier { return }
        admission.jobLeavesOrigin(cost: cost, owner)
    }

    deinit {
        endFetch()
        admission.releaseJob(cost: cost, owner.withoutOrigin)
        memory.endJob()
        for memory in joined.withLock(\.self) { memory.endJob() }
    }
}
