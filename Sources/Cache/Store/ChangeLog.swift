internal import Glibc
internal import SystemIO

/// The journal together with the index that follows it: the only writer of both.
///
/// The index may stay behind the journal, while it is rebuilt or because it cannot be written. It catches up with
/// ``followNextLines()``. Not synchronised: the store's lock guards it.
struct ChangeLog: ~Copyable, Sendable {
    private var journal: Journal
    private let index: ServingIndex
    private let files: ObjectFiles
    /// The offset up to which the index has applied the journal.
    private var applied: Int64
    /// Purges in force that could not be recorded yet.
    private var unrecordedPurges: [PurgeScope] = []
    private var agreement: FileAgreement
    /// The end of the journal when it was last made durable.
    private var syncedEnd: Int64 = 0
    private(set) var isClosed = false

    /// - Parameter index: Opened for this journal.
    init(_ journal: consuming Journal, index: ServingIndex, files: ObjectFiles) {
        applied = index.openedState?.position.offset ?? journal.start
        agreement = FileAgreement(isCertain: index.openedState?.isClean ?? false)
        self.journal = journal
        self.index = index
        self.files = files
    }

    /// Whether the index lacks a part of the journal.
    private var isBehind: Bool { applied < journal.end }

    /// Whether every line of the journal survives a power loss.
    var isDurable: Bool { syncedEnd == journal.end }

    /// The sequence of the next line of the journal.
    var nextSequence: Int64 { journal.nextSequence }

    /// Distinguishes the journal from any other.
    var journalIdentity: String { journal.identity }

    // MARK: Recording

    /// Appends entries to the journal and applies them to the index.
    ///
    /// An index that cannot be written stays behind the journal, which is not an error.
    ///
    /// - Parameter durable: Whether the entries must survive a power loss.
    /// - Returns: The lines, and what purges among them removed; nil if the index stayed behind.
    mutating func record(
        _ entries: [JournalEntry], durable: Bool = false
    ) throws(SystemError) -> (lines: [JournalLine], removed: RemovedRows?) {
        let isNext = !isBehind
        // The position of an index that is behind does not tell that it has these lines. If a power loss took them from the
        // journal, their rows would stay and be newer than the lines that follow.
        let mustSync = durable || !isNext
        let lines = try journal.append(entries, durable: mustSync)
        if mustSync { syncedEnd = journal.end }
        return (lines, apply(lines, upTo: isNext ? journal.end : nil))
    }

    /// Records a purge and removes what it covers from the index, and, if that cannot be written, the files.
    ///
    /// - Returns: The removed rows, and the error if the purge could not be made durable. It is in force nevertheless, and
    ///   ``retryFailedChanges()`` records it later, unless the log is closed.
    mutating func recordPurge(_ scope: PurgeScope) -> (removed: RemovedRows, failure: SystemError?) {
        // The journal is lost, or another server may have locked it since.
        guard !isClosed else { return (RemovedRows(), SystemError("write(journal)", code: ESTALE)) }
        let sequence = journal.nextSequence
        var removed: RemovedRows?
        var failure: SystemError?
        do throws(SystemError) {
            removed = try record([.purge(scope)], durable: true).removed
        } catch {
            failure = error
            // One purge of everything bounds the list after 1000 failures.
            unrecordedPurges = unrecordedPurges.count < 1000 ? unrecordedPurges + [scope] : [.all]
            removed = apply([JournalLine(sequence: sequence, entry: .purge(scope))], upTo: nil)
        }
        // The lines that the index lacks are older than the purge, so what they bring back must not be served.
        if isBehind { index.hideRows(before: sequence) }
        return (removed ?? removeFilesFirst(scope, before: sequence), failure)
    }

    /// Removes the files that a purge covers while the index cannot be written, most likely for lack of disk space, which this
    /// frees. The rows follow with the rest of the journal. Until then they are hidden.
    private mutating func removeFilesFirst(_ scope: PurgeScope, before sequence: Int64) -> RemovedRows {
        guard let covered = try? index.current.rows(coveredBy: scope, before: sequence) else { return RemovedRows() }
        remove(covered.objects)
        return covered
    }

    /// Applies lines to the index.
    ///
    /// - Parameter end: The offset after the lines, which the index records; nil if the index lacks lines before them.
    /// - Returns: What purges among them removed; nil if the index could not be written.
    private mutating func apply(_ lines: [JournalLine], upTo end: Int64?) -> RemovedRows? {
        let identity = journal.identity
        do throws(IndexError) {
            let position = end.map { IndexPosition(journal: identity, offset: $0) }
            let removed = try index.current.follow(lines, to: position)
            if let end { applied = end }
            if !isBehind, unrecordedPurges.isEmpty { index.showRows() }
            index.refreshTotals()
            return removed
        } catch {
            if lines.contains(where: \.entry.isPurge) { index.hideRows(before: journal.nextSequence) }
            replaceIndex(ifBrokenBy: error)
            return nil
        }
    }

    // MARK: Catching up

    /// Applies the next part of the journal that the index lacks.
    ///
    /// - Returns: Whether it has to be called again.
    mutating func followNextLines() -> Bool {
        guard !isClosed, isBehind else { return false }
        let start = applied
        // Housekeeping tries again if the journal cannot be read now.
        guard let (lines, next) = try? journal.read(from: start, limit: Self.bytesPerTransaction) else { return false }
        let removed = apply(lines, upTo: next)
        removeFiles(of: removed?.objects ?? [])
        return applied != start
    }

    /// Retries changes that failed: removals of rows, then purges that could not be recorded.
    mutating func retryFailedChanges() {
        guard !isClosed else { return }
        deleteRemovedRows()
        guard !unrecordedPurges.isEmpty else { return }
        let purges = unrecordedPurges
        unrecordedPurges = []
        do throws(SystemError) {
            let removed = try record(purges.map { .purge($0) }, durable: true).removed
            removeFiles(of: removed?.objects ?? [])
        } catch {
            unrecordedPurges = purges
        }
    }

    /// Whether purges are in force that the journal does not contain.
    var hasUnrecordedPurges: Bool { !unrecordedPurges.isEmpty }

    /// Makes the journal durable. A power loss before that loses renditions, but no purges.
    mutating func syncJournal() {
        guard !isClosed, !isDurable, (try? journal.sync()) != nil else { return }
        syncedEnd = journal.end
    }

    /// Replaces the index by an empty one, which then follows the journal from its start, if it is broken.
    mutating func replaceIndex(ifBrokenBy error: IndexError) {
        guard error.isBroken, !isClosed else { return }
        // If no index can be created now, hits from memory continue, other look-ups are misses, and housekeeping tries again.
        guard (try? index.replace(hidingRowsBefore: journal.nextSequence, because: error)) != nil else { return }
        applied = journal.start
        agreement.indexWasReplaced()
    }

    // MARK: Removing objects

    /// Removes objects: files first, which frees disk space even if the index cannot be written.
    mutating func remove(_ objects: [ObjectRow]) {
        for object in objects { removeFile(object.record.id, object.record.fileExtension) }
        index.noteRemoved(objects)
        deleteRemovedRows()
    }

    /// Evicts objects in their order, up to the first whose file cannot be removed: it keeps its row, because its bytes stay on
    /// the disk.
    mutating func evict(_ objects: [ObjectRow]) -> EvictedObjects {
        var evicted = EvictedObjects()
        for object in objects {
            do throws(SystemError) {
                if try files.remove(object.record.id, object.record.fileExtension) {
                    evicted.objects.append(object)
                } else {
                    evicted.withoutFile.append(object)
                }
            } catch {
                evicted.hasFailed = true
                break
            }
        }
        index.noteRemoved(evicted.objects + evicted.withoutFile)
        deleteRemovedRows()
        return evicted
    }

    /// Removes the rows of objects whose files are removed.
    mutating func deleteRemovedRows() {
        do throws(IndexError) {
            try index.deleteRemovedRows()
        } catch {
            replaceIndex(ifBrokenBy: error)
        }
    }

    /// Removes the files of objects whose rows are removed, unless an object was stored again.
    mutating func removeFiles(of objects: [ObjectRow]) {
        guard !objects.isEmpty else { return }
        guard !isBehind else {
            // A line that the index lacks may say that an object was stored again. Reconciliation removes the other files.
            return agreement.doubt()
        }
        for object in objects {
            switch isKnown(object.record.id) {
            case true?: continue
            case false?: removeFile(object.record.id, object.record.fileExtension)
            case nil: agreement.expectOrphans()
            }
        }
    }

    /// Removes a file. If that fails, the next start removes it, unless a row leads to it again.
    ///
    /// - Returns: Whether the file was removed.
    @discardableResult
    mutating func removeFile(_ id: ObjectID, _ fileExtension: String) -> Bool {
        do throws(SystemError) {
            return try files.remove(id, fileExtension)
        } catch {
            agreement.expectOrphans()
            return false
        }
    }

    /// Makes the next start look for files without rows.
    mutating func expectOrphans() {
        agreement.expectOrphans()
    }

    /// Whether the index has such an object; nil if the index cannot be read.
    private func isKnown(_ id: ObjectID, fileExtension: String? = nil) -> Bool? {
        do throws(IndexError) {
            guard let row = try index.current.objectRow(id) else { return false }
            return fileExtension == nil || row.record.fileExtension == fileExtension
        } catch {
            return nil
        }
    }

    // MARK: Reconciliation

    /// Whether files and rows may disagree and can be compared now.
    private var needsReconciliation: Bool { !isClosed && !agreement.isCertain && !isBehind }

    /// Whether the index may have rows of evicted objects; see ``FileAgreement/hasEvictedRows``.
    var hasEvictedRows: Bool { agreement.hasEvictedRows }

    /// Removes a file unless the index has a row for it or cannot tell.
    ///
    /// - Returns: Whether the file was removed.
    mutating func removeOrphan(_ id: ObjectID, _ fileExtension: String) -> Bool {
        guard needsReconciliation, isKnown(id, fileExtension: fileExtension) == false else { return false }
        return removeFile(id, fileExtension)
    }

    /// Identifies a reconciliation that begins now; nil if there is nothing to do, or not yet.
    var reconciliation: Int? { needsReconciliation ? agreement.doubts : nil }

    /// Records that files and rows agree, and removes aliases that lead to no row.
    ///
    /// - Parameter begun: The reconciliation that has ended. It counts only if there is no newer doubt.
    mutating func finishReconciliation(_ begun: Int) {
        guard reconciliation == begun, (try? index.current.removeDanglingAliases()) != nil else { return }
        agreement.filesWereCompared()
    }

    // MARK: Compaction

    /// Where a rewrite of the journal starts, if it is worthwhile and possible now.
    ///
    /// - Parameter floor: A journal of up to this many bytes is not rewritten.
    /// - Returns: The offset from which the current journal has to be copied, and the base of the new one.
    func compactionStart(floor: Int64) -> (offset: Int64, base: Int64)? {
        guard !isClosed, !isBehind, agreement.isCertain, unrecordedPurges.isEmpty else { return nil }
        guard journal.end > max(floor, index.totals.objects * Self.bytesPerObject) else { return nil }
        // Leaves numbers for all lines that are appended meanwhile, so that sequences increase.
        return (journal.end, journal.nextSequence + (1 << 40))
    }

    /// Replaces the journal by a rewritten one, after appending the lines from `offset` on to it.
    ///
    /// - Returns: False if it cannot be replaced now.
    mutating func replaceJournal(
        by rewritten: consuming Journal, named name: String, copyingFrom offset: Int64, in directory: CacheDirectory
    ) throws(SystemError) -> Bool {
        // An index that was replaced during the rewrite had only some of the rows.
        guard !isClosed, !isBehind, agreement.isCertain else { return false }
        var offset = offset
        while offset < journal.end {
            let (lines, next) = try journal.read(from: offset, limit: Self.bytesPerTransaction)
            try rewritten.copy(lines)
            offset = next
        }
        try rewritten.sync()
        try rewritten.moveInPlace(from: name, in: directory)
        // From here on, lines in the old file would be lost.
        journal = rewritten
        applied = journal.end
        // If this fails, the index belongs to no journal, and the next start rebuilds it.
        try? index.current.move(to: IndexPosition(journal: journal.identity, offset: journal.end))
        // If this fails, a power loss may bring the old file back. Housekeeping repeats it, and so does every purge.
        syncedEnd = (try? journal.sync()) == nil ? 0 : journal.end
        return true
    }

    // MARK: Closing

    /// Whether the log is open and the name of the journal in the directory leads to its journal.
    func isInPlace(in directory: CacheDirectory) -> Bool {
        !isClosed && journal.isInPlace(in: directory)
    }

    /// Makes the journal durable, records in the index whether files, journal and index agree, and closes both.
    ///
    /// - Parameter hand: The sequence at which the eviction hand stopped.
    mutating func close(hand: Int64) {
        guard !isClosed else { return }
        isClosed = true
        // Each of these may fail on a full disk. Then the next start compares files and rows.
        try? journal.sync()
        let index = index.current
        try? index.setHand(hand)
        if !isBehind, self.index.removedSequences.isEmpty, agreement.isComplete { try? index.setClean(true) }
        try? index.flush(emptyingLog: true)
        index.close()
        journal.unlock()
    }

    /// The bytes of the journal that are applied in one transaction: some thousand lines, which take some ten milliseconds.
    private static var bytesPerTransaction: Int { 1 << 20 }

    /// A journal with more bytes per object is worth a rewrite. One object and one alias take about 600.
    private static var bytesPerObject: Int64 { 4096 }
}

extension JournalEntry {
    fileprivate var isPurge: Bool {
        if case .purge = self { true } else { false }
    }
}
