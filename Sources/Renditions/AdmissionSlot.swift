internal import Fetch
internal import Synchronization
internal import SystemIO

/// A slot of ``Admission``. Releasing the last reference returns it, however the work ended.
package final class AdmissionSlot: Sendable {
    /// The part for the source's bytes. Readers of a source that outlive its job hold it, so that the bytes stay accounted for.
    let memory: AdmittedMemory
    private let admission: Admission
    private let cost: Int
    private let isBackground: Bool
    private let client: ClientNetwork?
    /// The origin of a fetch that has not ended.
    private let origin: Mutex<Admission.Origin?>
    /// Memory that other slots hold, for sources that this job shares.
    private let joined = Mutex<[AdmittedMemory]>([])
    private let kept = Mutex<(any AnyObject & Sendable)?>(nil)

    init(
        _ admission: Admission, _ origin: Admission.Origin?, bytes: Int, cost: Int, isBackground: Bool, client: ClientNetwork?
    ) {
        self.admission = admission
        self.client = client
        self.cost = cost
        self.isBackground = isBackground
        self.origin = Mutex(origin)
        memory = AdmittedMemory(admission, bytes: bytes)
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
        memory.shrink(to: bytes)
    }

    /// Keeps an object, such as the source in memory, until the slot is returned.
    func keep(_ object: any AnyObject & Sendable) {
        kept.withLock { $0 = object }
    }

    private func endFetch() {
        let ended = origin.withLock { $0.take() }
        admission.fetchEnded(ended, cost: cost)
    }

    deinit {
        endFetch()
        admission.releaseJob(cost: cost, isBackground: isBackground, client: client)
        memory.endJob()
        for memory in joined.withLock(\.self) { memory.endJob() }
    }
}
