internal import Synchronization

/// The objects used since the eviction hand last passed them: SIEVE's visited bits, by sequence.
///
/// A hit on an object whose bit is set already costs one relaxed load: each object remembers the lap in which it was last
/// reported here, and a lap ends whenever the hand has cleared bits. Lost at a restart, which only makes the first round of
/// eviction forget who was popular. Any thread.
final class VisitedObjects: Sendable {
    private let sequences = Mutex<Set<Int64>>([])
    private let lap = Atomic<Int>(0)

    /// Notes that an object was used.
    @inline(__always)
    func note(_ object: StoredObject) {
        guard object.isFirstUse(inLap: lap.load(ordering: .relaxed)) else { return }
        sequences.withLock { _ = $0.insert(object.sequence) }
    }

    /// Clears an object's bit and says whether it was set.
    func clear(_ sequence: Int64) -> Bool {
        sequences.withLock { $0.remove(sequence) != nil }
    }

    /// From here on every object reports its next use again. To be called after bits were cleared.
    func beginLap() {
        lap.add(1, ordering: .relaxed)
    }

    /// Forgets all bits.
    func reset() {
        sequences.withLock { $0 = [] }
        beginLap()
    }
}
