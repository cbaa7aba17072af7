internal import SystemIO

/// Writing the journal anew, without what counts no more.
extension Store {
    /// Rewrites the journal when most of it is about what is gone. Changes wait only for the last part.
    ///
    /// - Parameter floor: A journal below so many bytes is left alone.
    func compactIfWorthwhile(floor: Int64 = 16 << 20, unless isEnding: () -> Bool) {
        guard let (start, base) = change({ state in plan(state, floor) }) else { return }
        let name = Journal.fileName + ".new"
        do {
            var journal = try Journal.create(name, base: base, in: directory)
            guard try copyRows(into: &journal, unless: isEnding) else {
                try directory.removeFile(name)
                return
            }
            try journal.sync()
            try finishCompaction(journal, from: start, name)
        } catch {
            // The old journal is as good as before. A full disk is the likeliest cause, so leave nothing behind.
            _ = try? directory.removeFile(name)
        }
    }

    /// Where to copy from, if it is worth it.
    private func plan(_ state: borrowing State, _ floor: Int64) -> (start: Int64, base: Int64)? {
        guard !state.isClosed, !state.isBehind, state.isReconciled, state.unwrittenPurges.isEmpty else { return nil }
        let worth = max(floor, currentTotals.objects * Self.bytesPerObject)
        guard state.journal.end > worth else { return nil }
        // Room for all that is written meanwhile, so that sequences go on growing.
        return (state.journal.end, state.journal.nextSequence + 1 << 40)
    }

    /// Copies what the index holds. What changes meanwhile stands in the old journal's last part, which is copied after this
    /// and counts, having greater sequences.
    private func copyRows(into journal: inout Journal, unless isEnding: () -> Bool) throws -> Bool {
        var object: Int64 = 0
        while case let rows = try index.objects(after: object, limit: 512), let last = rows.last {
            if isEnding() { return false }
            try journal.copy(rows.flatMap { Self.lines(of: $0) })
            object = last.sequence
        }
        var key: AliasKey?
        while case let rows = try index.aliases(after: key, limit: 512), let last = rows.last {
            if isEnding() { return false }
            try journal.copy(rows.map { JournalLine(sequence: $0.sequence, entry: .alias($0.record, $0.object.record.id)) })
            key = last.record.key
        }
        var former: FormerAliasRow?
        while case let rows = try index.formerAliases(after: former, limit: 512), let last = rows.last {
            if isEnding() { return false }
            try journal.copy(rows.map { JournalLine(sequence: $0.sequence, entry: .formerAlias(url: $0.url, $0.object)) })
            former = last
        }
        return true
    }

    private static func lines(of row: ObjectRow) -> [JournalLine] {
        let object = JournalLine(sequence: row.sequence, entry: .object(row.record))
        return row.uploaded > 0 ? [object, JournalLine(sequence: row.uploaded, entry: .upload(row.record.id))] : [object]
    }

    private func finishCompaction(_ journal: consuming Journal, from start: Int64, _ name: String) throws(SystemError) {
        // A consumed value cannot be captured; a closure that runs once takes it out of here.
        var new: Journal? = consume journal
        try change { state throws(SystemError) in
            guard !state.isClosed, !state.isBehind, var journal = new.take() else { return }
            var place = start
            while place < state.journal.end {
                let (lines, next) = try state.journal.read(from: place, limit: 1 << 20)
                try journal.copy(lines)
                place = next
            }
            try journal.sync()
            try directory.replaceFile(Journal.fileName, with: name)
            state.journal = journal
            state.applied = state.journal.end
            // If this fails, the index belongs to no journal, and the next start makes it anew.
            try? index.setPosition(IndexPosition(journal: state.journal.identity, offset: state.journal.end))
        }
    }

    /// A journal of so many bytes for each object is worth rewriting; one object and one alias take some 600.
    private static var bytesPerObject: Int64 { 4096 }
}
