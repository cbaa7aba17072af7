internal import Synchronization
package import SystemIO

/// A rendition's bytes, open for reading, and their record. Immutable, shared by all who serve it.
package final class StoredObject: Sendable {
    package let record: ObjectRecord
    /// The open file. Read it by position only; it stays valid when the rendition is evicted or purged meanwhile.
    package let descriptor: SharedDescriptor
    /// Its place in the eviction queue; 0 when it is not stored.
    let sequence: Int64
    /// Whether the journal records that it was uploaded.
    private let uploaded = Atomic(false)
    /// The eviction hand's lap in which it was last reported as used.
    private let reportedLap = Atomic<Int>(-1)

    init(record: ObjectRecord, descriptor: SharedDescriptor, sequence: Int64) {
        self.record = record
        self.descriptor = descriptor
        self.sequence = sequence
    }

    var isUploaded: Bool { uploaded.load(ordering: .relaxed) }

    func markUploaded() {
        uploaded.store(true, ordering: .relaxed)
    }

    /// True once a lap: whoever gets it tells ``VisitedObjects``. Two threads at once may both get it, which does no harm.
    @inline(__always)
    func isFirstUse(inLap lap: Int) -> Bool {
        guard reportedLap.load(ordering: .relaxed) != lap else { return false }
        reportedLap.store(lap, ordering: .relaxed)
        return true
    }
}
