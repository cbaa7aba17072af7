internal import Synchronization
internal import SystemIO

/// The index that look-ups use, which may be replaced by an empty one while they run.
///
/// Any thread. Only the store's ``ChangeLog`` changes it, under the store's lock; ``view`` and ``totals`` never wait for a disk.
final class ServingIndex: Sendable {
    /// An index, and which of its rows may be served.
    struct View: Sendable {
        let index: Index
        /// A purge in a part of the journal that is not applied yet may cover rows older than this.
        fileprivate let visibleFrom: Int64

        func aliasRow(_ key: AliasKey) throws(IndexError) -> AliasRow? {
            guard let row = try index.aliasRow(key), row.sequence >= visibleFrom else { return nil }
            return row
        }

        func objectRow(_ id: ObjectID) throws(IndexError) -> ObjectRow? {
            guard let row = try index.objectRow(id), row.sequence >= visibleFrom else { return nil }
            return row
        }
    }

    private struct Counts: Sendable {
        var totals: IndexTotals
        /// Objects whose files are removed but whose rows could not be removed yet, by sequence.
        var removed: [Int64: ObjectRow] = [:]
    }

    private let directory: CacheDirectory
    private let report: @Sendable (CacheEvent) -> Void
    private let index: Mutex<Index>
    private let visibleFrom = Atomic<Int64>(0)
    private let counts: Mutex<Counts>
    private let rebuildCount = Atomic<Int64>(0)
    /// What the index recorded when it was opened; nil if it is empty and has to follow the journal from its start.
    let openedState: IndexState?

    /// Opens the index, or creates an empty one if it cannot be used with the journal. Rows stay hidden until ``showRows()`` if
    /// the index has not applied the whole journal.
    ///
    /// - Parameters:
    ///   - report: Receives why an index was replaced.
    init(
        in directory: CacheDirectory, following journal: borrowing Journal,
        report: @escaping @Sendable (CacheEvent) -> Void
    ) throws(CacheError) {
        self.directory = directory
        self.report = report
        let opened = Self.open(in: directory, following: journal, report: report)
        let new = if let opened { opened.index } else { try Self.createEmpty(in: directory) }
        do throws(IndexError) {
            // Durably: after a power loss it must not look as if the cache had been closed.
            try new.setClean(false)
            try new.flush(emptyingLog: false)
        } catch {
            // A full or read-only disk: stored renditions can still be served.
        }
        index = Mutex(new)
        openedState = opened?.state
        counts = Mutex(Counts(totals: opened?.totals ?? IndexTotals()))
        if (openedState?.position.offset ?? journal.start) < journal.end {
            hideRows(before: journal.nextSequence)
            if openedState == nil { rebuildCount.add(1, ordering: .relaxed) }
        }
    }

    /// The index as it is now. Callers that serve its rows use ``view`` instead.
    var current: Index { index.withLock { $0 } }

    /// The index and which of its rows may be served.
    ///
    /// The order matters: rows are hidden before an index is replaced. So a replaced index is seen only with the rows hidden.
    var view: View {
        let index = current
        return View(index: index, visibleFrom: visibleFrom.load(ordering: .acquiring))
    }

    /// Whether older rows are hidden because the index has not applied the whole journal.
    var isHidingRows: Bool { visibleFrom.load(ordering: .relaxed) > 0 }

    /// The number of times that the index was rebuilt.
    var rebuilds: Int64 { rebuildCount.current }

    // MARK: Changes by the change log

    /// Hides the rows that are older than `sequence`.
    func hideRows(before sequence: Int64) {
        visibleFrom.store(sequence, ordering: .releasing)
    }

    func showRows() {
        visibleFrom.store(0, ordering: .releasing)
    }

    /// Replaces the index by an empty one, whose rows are hidden.
    ///
    /// - Throws: ``CacheError`` if no index can be created now. Then all look-ups fail.
    func replace(hidingRowsBefore sequence: Int64, because cause: IndexError) throws(CacheError) {
        hideRows(before: sequence)
        // Closed first: SQLite removes its log by path, which would be that of the new index. Queries of the old index fail from
        // now on, and each is a miss.
        current.close()
        let new = try Self.createEmpty(in: directory)
        index.withLock { $0 = new }
        refreshTotals()
        report(.indexRebuilt(cause: cause.description))
        rebuildCount.add(1, ordering: .relaxed)
    }

    // MARK: Totals

    /// What is stored, as of the last change. Apart from the store's lock, which may be held while a disk syncs.
    var totals: IndexTotals { counts.withLock(\.totals) }

    /// Reads the totals from the index, less the objects whose files are removed. If that fails, the known totals stay.
    func refreshTotals() {
        guard var totals = try? current.totals() else { return }
        counts.withLock { counts in
            for row in counts.removed.values { totals.subtract(row) }
            counts.totals = totals
        }
    }

    /// Notes that the files of these objects are removed, and subtracts them from the totals.
    func noteRemoved(_ objects: [ObjectRow]) {
        counts.withLock { counts in
            for object in objects where counts.removed.updateValue(object, forKey: object.sequence) == nil {
                counts.totals.subtract(object)
            }
        }
    }

    /// The sequences of objects whose files are removed but whose rows could not be removed yet.
    var removedSequences: Set<Int64> { counts.withLock { Set($0.removed.keys) } }

    /// Removes the rows of objects whose files are removed.
    func deleteRemovedRows() throws(IndexError) {
        let rows = counts.withLock { Array($0.removed.values) }
        guard !rows.isEmpty else { return }
        try current.remove(rows)
        counts.withLock { $0.removed = [:] }
        refreshTotals()
    }

    // MARK: Opening

    private static func open(
        in directory: CacheDirectory, following journal: borrowing Journal, report: (CacheEvent) -> Void
    ) -> (index: Index, state: IndexState?, totals: IndexTotals)? {
        let problem: String
        var opened: Index?
        do throws(IndexError) {
            let index = try Index(path: directory.path(of: Index.fileName))
            opened = index
            let state = try index.state()
            let totals = try index.totals()
            if state.position.journal == journal.identity, state.position.offset <= journal.end {
                return (index, state, totals)
            }
            // A new index, which can follow any journal from its start.
            if state.position.journal.isEmpty { return (index, nil, IndexTotals()) }
            // Its rows may be wrong, not just old.
            problem = "it belongs to another journal"
        } catch {
            problem = error.description
        }
        opened?.close()
        report(.indexRebuilt(cause: problem))
        return nil
    }

    private static func createEmpty(in directory: CacheDirectory) throws(CacheError) -> Index {
        let path = directory.path(of: Index.fileName)
        do {
            for suffix in ["", "-wal", "-shm"] { try directory.removeFile(Index.fileName + suffix) }
            return try Index(path: path)
        } catch let error as SystemError {
            throw .directoryUnusable(path: path, cause: error)
        } catch {
            throw .indexUnusable(path: path, cause: "\(error)")
        }
    }
}
