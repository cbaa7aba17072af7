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
            directory.unlock()
        }
    }

    static func openJournal(in directory: CacheDirectory) throws(CacheError) -> Journal {
        do throws(SystemError) {
            return try Journal.open(in: directory)
        } catch {
            throw .directoryUnusable(path: directory.path, cause: error)
        }
    }

    static func openIndex(in directory: CacheDirectory, readers: Int) throws(CacheError) -> (Index, wasMade: Bool) {
        do throws(IndexError) {
            return (try Index(path: directory.path(of: Index.fileName), readers: readers), false)
        } catch {
            return (try makeIndex(in: directory, readers: readers), true)
        }
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
