internal import Synchronization

/// What a ``CacheIndex`` shows without its lock, which may be held while a disk syncs. Any thread.
final class IndexStatus: Sendable {
    private let knownTotals: Mutex<CacheTotals>
    private let knownRefusal: Mutex<UnstoredReason?>
    private let commits = Atomic<Int64>(0)
    private let lost = Atomic(false)

    init(_ totals: CacheTotals, refusal: UnstoredReason?) {
        knownTotals = Mutex(totals)
        knownRefusal = Mutex(refusal)
    }

    /// What is stored, as of the last change.
    var totals: CacheTotals {
        get { knownTotals.withLock { $0 } }
        set { knownTotals.withLock { $0 = newValue } }
    }

    /// Why nothing can be stored; nil if something can.
    var refusal: UnstoredReason? { isLost ? .directoryLost : knownRefusal.withLock { $0 } }

    func setRefusal(_ reason: UnstoredReason?) {
        knownRefusal.withLock { $0 = reason }
    }

    /// Whether the path no longer leads to the directory. That lasts until a restart.
    var isLost: Bool { lost.load(ordering: .relaxed) }

    func setLost() {
        lost.store(true, ordering: .relaxed)
    }

    /// The number of objects and aliases recorded so far; see ``CacheVersion``.
    var commitCount: Int64 { commits.load(ordering: .acquiring) }

    func countCommit() {
        commits.add(1, ordering: .releasing)
    }
}
