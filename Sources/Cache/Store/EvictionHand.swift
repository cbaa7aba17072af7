internal import Synchronization

/// The hand of SIEVE over the objects on disk (Zhang et al., NSDI 2024).
///
/// The queue is the index's order of sequences, so it survives a restart and takes no memory. Not synchronised: the store's lock
/// guards it.
struct EvictionHand: Sendable {
    /// The sequence of the last object that it passed.
    private(set) var position: Int64

    /// - Parameter position: Where it stopped before the restart; 0 for the start of the queue.
    init(at position: Int64) {
        self.position = max(0, position)
    }

    /// Moves from the oldest object towards the newest, passes objects that were used since its last visit, and selects others
    /// until they have `wanted` bytes or a bounded number is reached.
    ///
    /// - Parameter removed: The sequences of objects whose files are removed already.
    /// - Returns: The selected objects, and the error if the index could not be read any further.
    mutating func select(
        atLeast wanted: Int64, from index: Index, visited: VisitedObjects, except removed: Set<Int64>
    ) -> (objects: [ObjectRow], failure: IndexError?) {
        var selected: [ObjectRow] = []
        // The next round meets the objects that are selected already.
        var excluded = removed
        var bytes: Int64 = 0
        var rounds = 0
        var hasCleared = false
        defer { if hasCleared { visited.beginLap() } }
        // Two rounds are enough: the first clears every bit at worst.
        while bytes < wanted, selected.count < Self.batchSize, rounds <= 2 {
            let rows: [ObjectRow]
            do throws(IndexError) {
                rows = try index.objects(after: position, limit: Self.batchSize)
            } catch {
                return (selected, error)
            }
            if rows.isEmpty {
                position = 0
                rounds += 1
            }
            for candidate in rows where bytes < wanted && selected.count < Self.batchSize {
                position = candidate.sequence
                if excluded.contains(candidate.sequence) { continue }
                if visited.clear(candidate.sequence) {
                    hasCleared = true
                } else {
                    selected.append(candidate)
                    excluded.insert(candidate.sequence)
                    bytes += candidate.record.length
                }
            }
        }
        return (selected, nil)
    }

    private static var batchSize: Int { 64 }
}

/// What an eviction removed.
struct EvictedObjects: Sendable {
    /// The objects whose files were removed.
    var objects: [ObjectRow] = []
    /// The objects whose files were missing. Only their rows were removed, which frees no space.
    var withoutFile: [ObjectRow] = []
    /// Whether a file could not be removed.
    var hasFailed = false
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

    /// Notes that an object was used.
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
