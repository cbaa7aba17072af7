internal import Synchronization
internal import SystemIO

/// Everything that belongs to one opened directory: its files, its journal, its index; and the lock that puts all changes to them in one order.
///
/// **Order of a change**: the file's name, the journal's line, the index, the table in memory. A crash between two of them leaves a file that
/// nothing knows of, or a line whose file is missing, or an index behind the journal; each is put right at the next start, and none can be taken
/// for an answer.
///
/// Reads of the index and of files take no lock. Every call may block: not for I/O threads.
final class Store: Sendable {
    struct State: ~Copyable, Sendable {
        var journal: Journal
        /// Up to where the index follows the journal. Behind `journal.end` while it is being rebuilt or could not be written.
        var applied: Int64
        /// The eviction hand: the sequence it passed last.
        var hand: Int64 = 0
        /// Objects whose files are gone but whose rows could not be removed yet.
        var unremovedRows: [ObjectRow] = []
        /// Purges in force that could not be written down yet.
        var unwrittenPurges: [PurgeScope] = []
        /// Whether files and rows are known to agree, as far as a crash may have parted them.
        var isReconciled: Bool
        /// The end of the journal when it was made durable last.
        var syncedEnd: Int64 = 0
        var isClosed = false

        var isBehind: Bool { applied < journal.end }
    }

    let directory: CacheDirectory
    private let lock: Mutex<State>
    private let currentIndex: Mutex<Index>
    /// Apart from the state, whose lock may be held while a disk syncs.
    private let totals: Mutex<IndexTotals>
    /// Rows older than this may have been purged in a part of the journal that the index has not followed yet: not to be answered with.
    private let visibleFrom = Atomic<Int64>(0)
    private let readers: Int
    /// Times an index was made anew.
    let rebuilds = Atomic<Int64>(0)

    /// Opens the directory. Short in any case: an index that is behind is brought up to date by ``catchUp()`` later.
    init(path: String, readers: Int) throws(CacheError) {
        let directory = try CacheDirectory(path: path)
        let journal = try Self.openJournal(in: directory)
        var (index, wasMade) = try Self.openIndex(in: directory, readers: readers)
        var state: (position: IndexPosition, hand: Int64, isClean: Bool)
        do throws(IndexError) {
            state = try index.state()
        } catch {
            index = try Self.makeIndex(in: directory, readers: readers)
            wasMade = true
            state = (IndexPosition(journal: "", offset: 0), 0, false)
        }
        let follows = state.position.journal == journal.identity && state.position.offset <= journal.end
        if !follows, !wasMade, !state.position.journal.isEmpty {
            // It belongs to another journal: what it says may be wrong, not just old.
            index = try Self.makeIndex(in: directory, readers: readers)
            wasMade = true
        }
        let applied = follows ? state.position.offset : journal.start
        let visibleFrom = applied < journal.end ? journal.nextSequence : 0
        let isClean = state.isClean && follows
        var totals = IndexTotals()
        do throws(IndexError) {
            // Durably: after a loss of power it must not look as if the cache had been closed.
            try index.setClean(false)
            try index.checkpoint(emptyingLog: false)
            totals = try index.totals()
        } catch {
            // A full or read-only disk: what is there can still be served.
            totals = (try? index.totals()) ?? totals
        }

        self.directory = directory
        self.readers = readers
        lock = Mutex(State(
            journal: journal, applied: applied, hand: follows ? state.hand : 0, isReconciled: isClean))
        self.totals = Mutex(totals)
        currentIndex = Mutex(index)
        self.visibleFrom.store(visibleFrom, ordering: .relaxed)
        if !follows, visibleFrom > 0 { rebuilds.add(1, ordering: .relaxed) }
    }

    /// The index to read from now.
    var index: Index { currentIndex.withLock { $0 } }

    /// Makes one change. Nothing else changes meanwhile.
    func change<Result: Sendable, Failure: Error>(
        _ body: (inout State) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try lock.withLock { state throws(Failure) in try body(&state) }
    }

    /// Whether a row of the index may be answered with.
    func isVisible(_ sequence: Int64) -> Bool {
        sequence >= visibleFrom.load(ordering: .acquiring)
    }

    /// What is stored, as of the last change. No waiting.
    var currentTotals: IndexTotals { totals.withLock { $0 } }

    /// Whether the index is being brought up to date after a start. No waiting.
    var isCatchingUp: Bool { visibleFrom.load(ordering: .relaxed) > 0 }

    // MARK: Journal and index

    /// Writes entries down and applies them to the index. To be called within ``change(_:)``.
    ///
    /// An index that cannot be written stays behind the journal and catches up later; that is no failure.
    ///
    /// - Returns: The lines, and what purges among them removed; nil where the index stayed behind.
    func record(_ entries: [JournalEntry], durable: Bool, in state: inout State) throws(SystemError) -> (lines: [JournalLine], removed: Removed?) {
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
            if !state.isBehind, state.unwrittenPurges.isEmpty { visibleFrom.store(0, ordering: .releasing) }
            try readTotals()
            return removed
        } catch {
            if lines.contains(where: \.entry.isPurge) {
                visibleFrom.store(state.journal.nextSequence, ordering: .releasing)
            }
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

    /// Bytes of the journal applied in one transaction: some thousand lines, some ten milliseconds.
    private static let catchUpBytes = 1 << 20

    private func readTotals() throws(IndexError) {
        let current = try index.totals()
        totals.withLock { $0 = current }
    }

    /// Makes the index anew when it is broken.
    private func recover(from error: IndexError, in state: inout State) {
        guard error.isBroken else { return }
        do throws(CacheError) {
            let fresh = try Self.makeIndex(in: directory, readers: readers)
            let broken = currentIndex.withLock { index in
                let old = index
                index = fresh
                return old
            }
            // Its readers fail from here on, which is a miss for each.
            try? broken.close()
            state.applied = state.journal.start
            state.isReconciled = false
            totals.withLock { $0 = IndexTotals() }
            visibleFrom.store(state.journal.nextSequence, ordering: .releasing)
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

    // MARK: Removing

    /// Removes files of objects whose rows are gone, unless the object has come back. To be called within ``change(_:)``.
    func removeFiles(of objects: [ObjectRow], in state: inout State) {
        for object in objects {
            guard isGone(object.record.id) else { continue }
            // What cannot be removed is an orphan, removed at the next start.
            _ = try? directory.remove(object.record.id, object.record.fileExtension)
        }
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

    /// Removes objects: files first, so that room is made even where the index cannot be written. To be called within ``change(_:)``.
    func remove(_ objects: [ObjectRow], in state: inout State) {
        for object in objects {
            _ = try? directory.remove(object.record.id, object.record.fileExtension)
        }
        state.unremovedRows += objects
        removeRows(in: &state)
    }

    /// Tries to remove the rows of objects whose files are gone.
    func removeRows(in state: inout State) {
        guard !state.unremovedRows.isEmpty else { return }
        do throws(IndexError) {
            try index.remove(state.unremovedRows)
            state.unremovedRows = []
            try readTotals()
        } catch {
            recover(from: error, in: &state)
        }
    }

    // MARK: Opening and closing

    /// Notes that files, journal and index agree, and closes the index.
    func close() {
        change { state in
            guard !state.isClosed else { return }
            state.isClosed = true
            // Each may fail on a full disk; then the next start looks more closely.
            try? state.journal.sync()
            try? index.setHand(state.hand)
            if !state.isBehind, state.unremovedRows.isEmpty, state.isReconciled { try? index.setClean(true) }
            try? index.checkpoint(emptyingLog: true)
            try? index.close()
            directory.unlock()
        }
    }

    private static func openJournal(in directory: CacheDirectory) throws(CacheError) -> Journal {
        do throws(SystemError) {
            return try Journal.open(in: directory)
        } catch {
            throw .directoryUnusable(path: directory.path, cause: error)
        }
    }

    private static func openIndex(in directory: CacheDirectory, readers: Int) throws(CacheError) -> (Index, wasMade: Bool) {
        do throws(IndexError) {
            return (try Index(path: directory.path(of: Index.fileName), readers: readers), false)
        } catch {
            return (try makeIndex(in: directory, readers: readers), true)
        }
    }

    private static func makeIndex(in directory: CacheDirectory, readers: Int) throws(CacheError) -> Index {
        let path = directory.path(of: Index.fileName)
        do {
            for suffix in ["", "-wal", "-shm"] { try directory.removeFile(Index.fileName + suffix) }
            return try Index(path: path, readers: readers)
        } catch let error as SystemError {
            throw .directoryUnusable(path: path, cause: error)
        } catch {
            throw .indexUnusable(path: path, cause: "\(error)")
        }
    }
}

extension JournalEntry {
    var isPurge: Bool {
        if case .purge = self { true } else { false }
    }
}
