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
            do throws(SystemError) {
                return (try record([.purge(scope)], durable: true, in: &state).removed, nil)
            } catch {
                // Retried by housekeeping. So many failures in a row may as well forget everything.
                state.unwrittenPurges = state.unwrittenPurges.count < 1000 ? state.unwrittenPurges + [scope] : [.all]
                let line = JournalLine(sequence: state.journal.nextSequence, entry: .purge(scope))
                return (apply([line], from: .max, to: .max, in: &state), error)
            }
        }
        failure = problem
        return removed
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
