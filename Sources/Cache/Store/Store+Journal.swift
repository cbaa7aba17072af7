internal import Synchronization
internal import SystemIO

/// Keeping the index where the journal is.
extension Store {
    /// Writes entries down and applies them to the index. To be called within ``change(_:)``.
    ///
    /// An index that cannot be written stays behind the journal and catches up later; that is no failure.
    ///
    /// - Returns: The lines, and what purges among them removed; nil where the index stayed behind.
    func record(
        _ entries: [JournalEntry], durable: Bool, in state: inout State
    ) throws(SystemError) -> (lines: [JournalLine], removed: Removed?) {
        let start = state.journal.end
        let lines = try state.journal.append(entries, durable: durable)
        return (lines, apply(lines, from: start, to: state.journal.end, in: &state))
    }

    /// Applies lines that lie between two places of the journal. The position only moves where nothing before is missing.
    ///
    /// - Returns: What purges among them removed; nil where the index could not be written.
    func apply(_ lines: [JournalLine], from start: Int64, to end: Int64, in state: inout State) -> Removed? {
        let follows = state.applied == start
        let position = IndexPosition(journal: state.journal.identity, offset: end)
        do throws(IndexError) {
            let removed = try index.apply(lines, position: follows ? position : nil)
            if follows { state.applied = end }
            if !state.isBehind, state.unwrittenPurges.isEmpty { showRows() }
            readTotals(in: state)
            return removed
        } catch {
            if lines.contains(where: \.entry.isPurge) { hideRows(in: state) }
            recover(from: error, in: &state)
            return nil
        }
    }

    /// Applies what the index has not followed yet, a part at a time, letting other changes in between.
    ///
    /// - Returns: False when the index cannot be written now, or the store is closed.
    @discardableResult
    func catchUp(unless isEnding: () -> Bool = { false }) -> Bool {
        while !isEnding() {
            let isDone: Bool? = change { state in
                if state.isClosed { return false }
                if !state.isBehind { return true }
                let start = state.applied
                // A journal that cannot be read now is tried again by housekeeping.
                guard let (lines, next) = try? state.journal.read(from: start, limit: Self.catchUpBytes) else { return false }
                let removed = apply(lines, from: start, to: next, in: &state)
                removeFiles(of: removed?.objects ?? [], in: &state)
                return state.applied == start ? false : nil
            }
            if let isDone { return isDone }
        }
        return false
    }

    /// Tries again what could not be written before: purges first, then rows of removed objects.
    func retry() {
        change { state in
            guard !state.isClosed else { return }
            removeRows(in: &state)
            guard !state.unwrittenPurges.isEmpty else { return }
            let purges = state.unwrittenPurges
            state.unwrittenPurges = []
            do throws(SystemError) {
                let removed = try record(purges.map { .purge($0) }, durable: true, in: &state).removed
                removeFiles(of: removed?.objects ?? [], in: &state)
            } catch {
                state.unwrittenPurges = purges
            }
        }
    }

    /// Makes the journal durable as far as it is written. A loss of power before costs renditions, never more.
    func sync() {
        change { state in
            guard !state.isClosed, state.syncedEnd != state.journal.end, (try? state.journal.sync()) != nil else { return }
            state.syncedEnd = state.journal.end
        }
    }

    /// Makes the index anew when it is broken.
    func recover(from error: IndexError, in state: inout State) {
        guard error.isBroken else { return }
        hideRows(in: state)
        // Closed first: SQLite removes the log by its path, which would be that of the new index. Its readers fail from here
        // on, which is a miss for each.
        try? index.close()
        do throws(CacheError) {
            replaceIndex(with: try Self.makeIndex(in: directory, readers: readers))
            state.applied = state.journal.start
            state.isReconciled = false
            readTotals(in: state)
            report(.indexRebuilt(cause: error.description))
            rebuilds.add(1, ordering: .relaxed)
        } catch {
            // No index can be made now: hot entries go on, the rest are misses, and housekeeping tries again.
        }
    }

    /// Told by a reader that the index is broken.
    func report(_ error: IndexError, of broken: Index) {
        guard error.isBroken else { return }
        change { state in
            if index === broken, !state.isClosed { recover(from: error, in: &state) }
        }
    }

    /// Bytes of the journal applied in one transaction: some thousand lines, some ten milliseconds.
    private static var catchUpBytes: Int { 1 << 20 }
}

extension JournalEntry {
    var isPurge: Bool {
        if case .purge = self { true } else { false }
    }
}
