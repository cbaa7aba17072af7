internal import Synchronization
internal import SystemIO

/// Everything that belongs to one opened directory: its files, its journal, its index; and the lock that puts all changes to
/// them in one order.
///
/// **Order of a change**: the file's name, the journal's line, the index, the table in memory. A crash between two of them
/// leaves a file that nothing knows of, or a line whose file is missing, or an index behind the journal; each is put right at
/// the next start, and none can be taken for an answer.
///
/// Reads of the index and of files take no lock. Every call may block: not for I/O threads.
final class Store: Sendable {
    struct State: ~Copyable, Sendable {
        var journal: Journal
        /// Up to where the index follows the journal. Behind `journal.end` while it is being rebuilt or could not be written.
        var applied: Int64
        /// The eviction hand: the sequence it passed last.
        var hand: Int64 = 0
        /// Objects whose files are gone but whose rows could not be removed yet, by sequence.
        var unremovedRows: [Int64: ObjectRow] = [:]
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
    /// Rows older than this may have been purged in a part of the journal that the index has not followed yet: not to be
    /// answered with.
    private let visibleFrom = Atomic<Int64>(0)
    let readers: Int
    /// Told of what an operator should know.
    let report: @Sendable (CacheEvent) -> Void
    /// Times an index was made anew.
    let rebuilds = Atomic<Int64>(0)

    /// Opens the directory. Short in any case: an index that is behind is brought up to date by ``catchUp()`` later.
    init(
        path: String, readers: Int, report: @escaping @Sendable (CacheEvent) -> Void = { _ in }
    ) throws(CacheError) {
        let directory = try CacheDirectory(path: path)
        let journal = try Journal.open(in: directory)
        let opened = try Self.openIndex(in: directory, following: journal, readers: readers, report: report)
        let follows = !opened.position.journal.isEmpty
        let applied = follows ? opened.position.offset : journal.start
        let visibleFrom = applied < journal.end ? journal.nextSequence : 0
        do throws(IndexError) {
            // Durably: after a loss of power it must not look as if the cache had been closed.
            try opened.index.setClean(false)
            try opened.index.checkpoint(emptyingLog: false)
        } catch {
            // A full or read-only disk: what is stored can still be served.
        }

        self.directory = directory
        self.readers = readers
        self.report = report
        lock = Mutex(
            State(journal: journal, applied: applied, hand: max(0, opened.hand), isReconciled: opened.isClean))
        totals = Mutex(opened.totals)
        currentIndex = Mutex(opened.index)
        self.visibleFrom.store(visibleFrom, ordering: .relaxed)
        if !follows, visibleFrom > 0 { rebuilds.add(1, ordering: .relaxed) }
    }

    /// The index as it is now. Whoever answers with what he reads in it asks ``view()`` instead.
    var index: Index { currentIndex.withLock { $0 } }

    /// What to look things up in.
    ///
    /// The order matters: an index that is replaced is hidden first. So whatever is seen here was hidden for as long as a
    /// part of the journal was missing from it.
    func view() -> IndexView {
        let index = index
        return IndexView(index: index, visibleFrom: visibleFrom.load(ordering: .acquiring))
    }

    func replaceIndex(with new: Index) {
        currentIndex.withLock { $0 = new }
    }

    /// Hides rows that the index has now.
    func hideRows(in state: borrowing State) {
        visibleFrom.store(state.journal.nextSequence, ordering: .releasing)
    }

    func showRows() {
        visibleFrom.store(0, ordering: .releasing)
    }

    /// Makes one change. Nothing else changes meanwhile.
    func change<Result: Sendable, Failure: Error>(
        _ body: (inout State) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try lock.withLock { state throws(Failure) in try body(&state) }
    }

    /// What is stored, as of the last change. No waiting.
    var currentTotals: IndexTotals { totals.withLock { $0 } }

    /// Reads the totals from the index, less rows whose files are gone. If that fails, the known totals stay.
    func readTotals(in state: borrowing State) {
        guard var current = try? index.totals() else { return }
        for row in state.unremovedRows.values { current.subtract(row) }
        totals.withLock { $0 = current }
    }

    /// Takes objects whose rows cannot be removed yet out of the totals.
    func subtractFromTotals(_ objects: [ObjectRow]) {
        totals.withLock { totals in
            for object in objects { totals.subtract(object) }
        }
    }

    /// Whether the path still leads to this directory and this journal.
    var isInPlace: Bool {
        directory.isInPlace && change { $0.isClosed || $0.journal.isInPlace(in: directory) }
    }

    /// Whether the index is being brought up to date after a start. No waiting.
    var isCatchingUp: Bool { visibleFrom.load(ordering: .relaxed) > 0 }
}
