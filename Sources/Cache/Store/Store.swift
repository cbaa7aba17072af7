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
    /// Rows older than this may have been purged in a part of the journal that the index has not followed yet: not to be
    /// answered with.
    private let visibleFrom = Atomic<Int64>(0)
    let readers: Int
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
        lock = Mutex(
            State(
                journal: journal, applied: applied, hand: follows ? state.hand : 0, isReconciled: isClean))
        self.totals = Mutex(totals)
        currentIndex = Mutex(index)
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

    func replaceIndex(with new: Index) -> Index {
        currentIndex.withLock { index in
            let old = index
            index = new
            return old
        }
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

    /// Reads what is stored from the index; where that fails, what was known stays.
    func readTotals() {
        guard let current = try? index.totals() else { return }
        totals.withLock { $0 = current }
    }

    /// Whether the index is being brought up to date after a start. No waiting.
    var isCatchingUp: Bool { visibleFrom.load(ordering: .relaxed) > 0 }
}
