internal import Synchronization

/// The objects used since the eviction hand last passed them: SIEVE's visited bits, by sequence.
///
/// A hit on an object whose bit is set costs one relaxed load: each object remembers the lap of its last report, and a lap ends
/// whenever the hand has cleared bits. The bits are lost at a restart, which only affects the first round of eviction. Any
/// thread.
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

    /// Makes every object report its next use again. To be called after bits were cleared.
    func beginLap() {
        lap.add(1, ordering: .relaxed)
    }

    /// Forgets all bits.
    func reset() {
        sequences.withLock { $0 = [] }
        beginLap()
    }
}

/// The objects whose bytes were compared with their SHA-256 since the start, so that they are hashed only once.
///
/// Bounded: when it is full, it is emptied, and objects are hashed again. Any thread.
final class VerifiedObjects: Sendable {
    private let sequences = Mutex<Set<Int64>>([])
    private let limit: Int

    init(limit: Int = 1 << 18) {
        self.limit = limit
    }

    func contains(_ sequence: Int64) -> Bool {
        sequences.withLock { $0.contains(sequence) }
    }

    func insert(_ sequence: Int64) {
        sequences.withLock { sequences in
            if sequences.count >= limit { sequences.removeAll() }
            sequences.insert(sequence)
        }
    }

    func removeAll() {
        sequences.withLock { $0 = [] }
    }
}
