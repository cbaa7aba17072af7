internal import SystemIO

/// Opening and closing.
extension Store {
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
            state.journal.unlock()
            directory.unlock()
        }
    }

    /// An index with what it says about itself.
    struct OpenedIndex {
        let index: Index
        var position = IndexPosition(journal: "", offset: 0)
        var hand: Int64 = 0
        var isClean = false
        var totals = IndexTotals()
    }

    /// Opens the index, or creates an empty one if it cannot be used with the journal.
    ///
    /// - Parameter report: Told why an index was not used.
    static func openIndex(
        in directory: CacheDirectory, following journal: borrowing Journal, readers: Int,
        report: (CacheEvent) -> Void
    ) throws(CacheError) -> OpenedIndex {
        let problem: String
        var opened: Index?
        do throws(IndexError) {
            let index = try Index(path: directory.path(of: Index.fileName), readers: readers)
            opened = index
            let (position, hand, isClean) = try index.state()
            let totals = try index.totals()
            if position.journal == journal.identity, position.offset <= journal.end {
                return OpenedIndex(index: index, position: position, hand: hand, isClean: isClean, totals: totals)
            }
            // A new index. It follows any journal from its start.
            if position.journal.isEmpty { return OpenedIndex(index: index) }
            // What it says about another journal may be wrong, not just old.
            problem = "it belongs to another journal"
        } catch {
            problem = error.description
        }
        try? opened?.close()
        report(.indexRebuilt(cause: problem))
        return OpenedIndex(index: try makeIndex(in: directory, readers: readers))
    }

    static func makeIndex(in directory: CacheDirectory, readers: Int) throws(CacheError) -> Index {
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
