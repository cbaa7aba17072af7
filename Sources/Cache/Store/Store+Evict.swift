/// SIEVE over the objects on disk.
extension Store {
    /// Moves the hand from the oldest object towards the newest, passing by those used since it last came, until it has
    /// removed `wanted` bytes or a bounded number of objects.
    ///
    /// The queue is the index's order of sequences, so it survives a restart and takes no memory.
    ///
    /// - Returns: What was removed: files, rows, aliases. Empty when there is nothing, or the index cannot be read.
    func evict(atLeast wanted: Int64, visited: VisitedObjects) -> [ObjectRow] {
        change { state in
            guard !state.isClosed else { return [] }
            // Rows that could not be removed the last time: without this they would be found again and again.
            removeRows(in: &state)
            var doomed: [ObjectRow] = []
            // Rows that are no candidates: those chosen already, which the next turn meets again, and those whose files are
            // gone but whose rows could not be removed.
            var excluded = Set(state.unremovedRows.keys)
            var bytes: Int64 = 0
            var turns = 0
            var cleared = false
            // Two turns are enough: the first clears every bit at worst.
            while bytes < wanted, doomed.count < Self.evictionBatch, turns <= 2 {
                let rows: [ObjectRow]
                do throws(IndexError) {
                    rows = try index.objects(after: state.hand, limit: Self.evictionBatch)
                } catch {
                    recover(from: error, in: &state)
                    break
                }
                if rows.isEmpty {
                    state.hand = 0
                    turns += 1
                }
                for candidate in rows where bytes < wanted && doomed.count < Self.evictionBatch {
                    state.hand = candidate.sequence
                    if excluded.contains(candidate.sequence) { continue }
                    if visited.clear(candidate.sequence) {
                        cleared = true
                    } else {
                        doomed.append(candidate)
                        excluded.insert(candidate.sequence)
                        bytes += candidate.record.length
                    }
                }
            }
            if cleared { visited.beginLap() }
            remove(doomed, in: &state)
            return doomed
        }
    }

    private static var evictionBatch: Int { 64 }
}
