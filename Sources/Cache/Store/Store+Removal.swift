internal import SystemIO

/// Removing objects.
extension Store {
    /// Removes files of objects whose rows are gone, unless the object has come back. To be called within ``change(_:)``.
    func removeFiles(of objects: [ObjectRow], in state: inout State) {
        for object in objects {
            guard isGone(object.record.id) else { continue }
            // What cannot be removed is an orphan, removed at the next start.
            _ = try? directory.remove(object.record.id, object.record.fileExtension)
        }
    }

    /// Has the next start look for files that nothing knows of.
    func expectOrphans() {
        change { $0.isReconciled = false }
    }

    /// Whether the index surely has no such object.
    private func isGone(_ id: ObjectID) -> Bool {
        do throws(IndexError) {
            return try index.object(id) == nil
        } catch {
            return false
        }
    }

    /// Removes one object, if it is still the one that was looked at.
    ///
    /// - Returns: False when it was gone or had been replaced.
    func forget(_ object: ObjectRow) -> Bool {
        change { state in
            guard !state.isClosed, let current = try? index.object(object.record.id), current.sequence == object.sequence else {
                return false
            }
            remove([current], in: &state)
            return true
        }
    }

    /// Removes objects: files first, so that room is made even where the index cannot be written. To be called within
    /// ``change(_:)``.
    func remove(_ objects: [ObjectRow], in state: inout State) {
        for object in objects {
            _ = try? directory.remove(object.record.id, object.record.fileExtension)
        }
        let new = objects.filter { state.unremovedRows.updateValue($0, forKey: $0.sequence) == nil }
        subtractFromTotals(new)
        removeRows(in: &state)
    }

    /// Tries to remove the rows of objects whose files are gone.
    func removeRows(in state: inout State) {
        guard !state.unremovedRows.isEmpty else { return }
        do throws(IndexError) {
            try index.remove(Array(state.unremovedRows.values))
            state.unremovedRows = [:]
            readTotals(in: state)
        } catch {
            recover(from: error, in: &state)
        }
    }
}

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
