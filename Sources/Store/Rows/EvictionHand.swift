internal import Synchronization

/// The hand of SIEVE over the objects on disk (Zhang et al., NSDI 2024).
///
/// The queue is the order of sequences in the ledger, so it survives a restart and takes no memory. Not synchronised: the
/// store's lock guards it.
struct EvictionHand: Sendable {
    /// The sequence of the last object that it passed.
    private(set) var position: Int64
    /// The number of times that it passed the newest object since it last selected one.
    private var idleLaps = 0

    /// - Parameter position: Where it stopped before the restart; 0 for the start of the queue.
    init(at position: Int64) {
        self.position = max(0, position)
    }

    /// Moves from the oldest object towards the newest, skips objects that were used since its last visit, and selects others
    /// until they occupy `wanted` bytes of the disk. Each call passes a bounded number of objects.
    ///
    /// - Parameter rows: Returns up to `limit` objects after a sequence.
    /// - Returns: The selected objects; nil if there is none to select.
    mutating func select(
        atLeast wanted: Int64, visited: VisitedObjects,
        from rows: (_ sequence: Int64, _ limit: Int) throws(LedgerError) -> [ObjectRow]
    ) throws(LedgerError) -> [ObjectRow]? {
        var selected: [ObjectRow] = []
        var space: Int64 = 0
        var hasCleared = false
        defer { if hasCleared { visited.beginLap() } }
        for candidate in try rows(position, Self.limitPerCall) {
            position = candidate.sequence
            if visited.clear(candidate.sequence) {
                hasCleared = true
                continue
            }
            selected.append(candidate)
            space += candidate.record.space
            idleLaps = 0
            if space >= wanted || selected.count >= Self.batchSize { return selected }
        }
        if selected.isEmpty, !hasCleared {
            // The first lap clears every bit at worst.
            if idleLaps >= 2 {
                idleLaps = 0
                return nil
            }
            position = 0
            idleLaps += 1
        }
        return selected
    }

    private static var batchSize: Int { 64 }
    private static var limitPerCall: Int { 256 }
}

struct EvictedObjects: Sendable {
    var objects: [ObjectRow] = []
    /// The objects whose files were missing. Only their rows were removed, which frees no space.
    var withoutFile: [ObjectRow] = []
    var mayContinue = true
}

/// The objects used since the eviction hand last passed them: SIEVE's visited bits, by sequence.
///
/// A hit on an object whose bit is set costs one relaxed load: each object remembers the lap of its last report, and a lap ends
/// whenever the hand has cleared bits. The bits are lost at a restart, which only affects the first round of eviction. Bits of
/// objects that were purged stay, so all are forgotten once there are too many. Any thread.
final class VisitedObjects: Sendable {
    private let sequences = Mutex<Set<Int64>>([])
    private let lap = Atomic<Int>(0)
    private let limit: Int

    /// - Parameter limit: The largest number of bits.
    init(limit: Int = 1 << 20) {
        self.limit = limit
    }

    @inline(__always)
    func note(_ object: StoredObject) {
        guard object.isFirstUse(inLap: lap.load(ordering: .relaxed)) else { return }
        set(object.sequence)
    }

    private func set(_ sequence: Int64) {
        let isFull = sequences.withLock { sequences in
            let isFull = sequences.count >= limit
            if isFull { sequences.removeAll() }
            sequences.insert(sequence)
            return isFull
        }
        if isFull { beginLap() }
    }

    /// Clears an object's bit, and returns whether it was set.
    func clear(_ sequence: Int64) -> Bool {
        sequences.withLock { $0.remove(sequence) != nil }
    }

    /// Makes every object report its next use again. Must be called after bits were cleared.
    func beginLap() {
        lap.add(1, ordering: .relaxed)
    }

    func reset() {
        sequences.withLock { $0 = [] }
        beginLap()
    }
}
