internal import SystemIO

/// Purging.
extension Store {
    /// Writes a purge down and removes what it covers from the index; the files come after, with ``removeFiles(of:)``.
    ///
    /// - Parameters:
    ///   - failure: Set when it could not be written down durably; it is carried out all the same.
    ///   - inForce: Called under the lock, once the index has been changed.
    func purge(_ scope: PurgeScope, failure: inout SystemError?, inForce: () -> Void) -> Removed {
        let (removed, problem): (Removed, SystemError?) = change { state in
            defer { inForce() }
            let sequence = state.journal.nextSequence
            do throws(SystemError) {
                let removed = try record([.purge(scope)], durable: true, in: &state).removed
                return (removed ?? purgeFiles(scope, before: sequence, in: &state), nil)
            } catch {
                // Retried by housekeeping. So many failures in a row may as well forget everything.
                state.unwrittenPurges = state.unwrittenPurges.count < 1000 ? state.unwrittenPurges + [scope] : [.all]
                let line = JournalLine(sequence: sequence, entry: .purge(scope))
                let removed = apply([line], from: .max, to: .max, in: &state)
                return (removed ?? purgeFiles(scope, before: sequence, in: &state), error)
            }
        }
        failure = problem
        return removed
    }

    /// Where the index cannot be written, for want of room most likely: removes the files at once, and so makes room. The
    /// rows follow with the rest of the journal; until then they are not answered with.
    private func purgeFiles(_ scope: PurgeScope, before sequence: Int64, in state: inout State) -> Removed {
        guard let covered = try? index.covered(by: scope, before: sequence) else { return Removed() }
        remove(covered.objects, in: &state)
        return covered
    }

    /// Removes files of objects whose rows are gone, some at a time, so that others get at the store in between.
    func removeFiles(of objects: [ObjectRow]) {
        var rest = objects[...]
        while !rest.isEmpty {
            let batch = Array(rest.prefix(64))
            rest = rest.dropFirst(64)
            change { removeFiles(of: batch, in: &$0) }
        }
    }
}
