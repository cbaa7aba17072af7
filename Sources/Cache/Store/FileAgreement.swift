/// What is known about whether the files of the objects and the rows of the index agree. Not synchronised.
struct FileAgreement: Sendable {
    /// Whether files and rows are known to agree, in spite of a crash.
    private(set) var isCertain: Bool
    /// The number of times that it became uncertain whether files and rows agree.
    private(set) var doubts = 0
    /// Whether the index may have rows of evicted objects: it was built from the journal, which does not record evictions, and
    /// files and rows have not been compared since. That may have been before a restart.
    private(set) var hasEvictedRows: Bool
    /// Whether a file without a row may be left, which the next start then removes.
    private var hasOrphans = false

    /// - Parameter isCertain: Whether the cache was closed in order, with files and rows that agreed.
    init(isCertain: Bool) {
        self.isCertain = isCertain
        hasEvictedRows = !isCertain
    }

    /// Whether files and rows agree and no file without a row is left.
    var isComplete: Bool { isCertain && !hasOrphans }

    /// Records that files and rows may disagree.
    mutating func doubt() {
        isCertain = false
        doubts += 1
    }

    /// Records that an empty index, which follows the journal from its start, has replaced the former one.
    mutating func indexWasReplaced() {
        hasEvictedRows = true
        doubt()
    }

    /// Records that a file without a row may be left.
    mutating func expectOrphans() {
        hasOrphans = true
    }

    /// Records that files and rows were compared, and agree.
    mutating func filesWereCompared() {
        isCertain = true
        hasEvictedRows = false
    }
}
