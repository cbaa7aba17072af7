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
