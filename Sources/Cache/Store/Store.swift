internal import Glibc
internal import Synchronization
internal import SystemIO

/// One opened directory with its files, its journal and its index, and the lock that puts all changes of them in one order.
///
/// **Order of a change**: the name of the file, the line of the journal, the index, the table in memory. A crash between two of
/// them leaves a file without a line, a line whose file is missing, or an index behind the journal. The next start repairs each
/// of these, and none of them is served.
///
/// Reads of the index and of files take no lock. Every call may block: not for I/O threads.
final class Store: Sendable {
    private struct State: ~Copyable, Sendable {
        var log: ChangeLog
        var hand: EvictionHand
    }

    let directory: CacheDirectory
    private let index: ServingIndex
    private let state: Mutex<State>

    /// Opens and locks the directory. Does not wait for an index that is behind the journal; see ``catchUp(unless:)``.
    ///
    /// - Parameters:
    ///   - report: Receives events that an operator should know.
    init(
        path: String, report: @escaping @Sendable (CacheEvent) -> Void = { _ in }
    ) throws(CacheError) {
        let directory = try CacheDirectory(path: path)
        let journal = try Journal.open(in: directory)
        let index = try ServingIndex(in: directory, following: journal, report: report)
        self.directory = directory
        self.index = index
        state = Mutex(
            State(
                log: ChangeLog(journal, index: index, files: directory.objects),
                hand: EvictionHand(at: index.openedState?.hand ?? 0)))
    }

    /// Records that files, journal and index agree, closes the index, and unlocks the directory. A second call does nothing.
    func close() {
        change { state in
            guard !state.log.isClosed else { return }
            state.log.close(hand: state.hand.position)
            directory.unlock()
        }
    }

    /// Whether the store is open and the path still leads to its directory and its journal.
    var isInPlace: Bool {
        directory.isInPlace && change { $0.log.isInPlace(in: directory) }
    }

    /// Makes one change. No other change happens meanwhile.
    private func change<Result: Sendable, Failure: Error>(
        _ body: (inout State) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try state.withLock { state throws(Failure) in try body(&state) }
    }

    /// The sequence of the next line of the journal.
    var nextSequence: Int64 { change { $0.log.nextSequence } }

    /// Distinguishes the journal from any other.
    var journalIdentity: String { change { $0.log.journalIdentity } }

    // MARK: Queries

    /// The alias with that key and its object; nil if there is none, it is hidden, or the index fails.
    func aliasRow(_ key: AliasKey) -> AliasRow? {
        query { view throws(IndexError) in try view.aliasRow(key) } ?? nil
    }

    /// The object with that id; nil if there is none, it is hidden, or the index fails.
    func objectRow(_ id: ObjectID) -> ObjectRow? {
        query { view throws(IndexError) in try view.objectRow(id) } ?? nil
    }

    /// Up to `limit` objects after `sequence`, in the order of the eviction queue; nil if the index fails.
    func objects(after sequence: Int64, limit: Int) -> [ObjectRow]? {
        query { view throws(IndexError) in try view.index.objects(after: sequence, limit: limit) }
    }

    /// The file extensions of all objects whose ids begin with the byte `first`; nil if the index fails.
    func extensions(ofObjectsIn first: UInt8) -> [ObjectID: String]? {
        query { view throws(IndexError) in try view.index.extensions(ofObjectsIn: first) }
    }

    private func query<Result>(_ body: (ServingIndex.View) throws(IndexError) -> Result) -> Result? {
        let view = index.view
        do throws(IndexError) {
            return try body(view)
        } catch {
            guard error.isBroken else { return nil }
            change { state in
                // Another query may have replaced it already.
                if index.current === view.index { state.log.replaceIndex(ifBrokenBy: error) }
            }
            return nil
        }
    }

    /// What is stored, as of the last change. Never waits for a disk.
    var totals: IndexTotals { index.totals }

    /// Whether the index has not applied the whole journal yet. Never waits for a disk.
    var isCatchingUp: Bool { index.isHidingRows }

    /// The number of times that the index was rebuilt.
    var rebuilds: Int64 { index.rebuilds }

    // MARK: Publishing

    /// Adds a rendition to the cache: names its file, and records it in journal and index. If the object is stored already, only
    /// its reference is recorded.
    ///
    /// - Parameter isWanted: Called under the lock that purges take, too. A purge after it finds the rendition.
    func commit(
        _ job: PublishJob, _ record: ObjectRecord, if isWanted: () -> Bool
    ) throws(UnstoredReason) -> CommittedObject {
        try change { state throws(UnstoredReason) in
            guard !state.log.isClosed else { throw .unavailable }
            guard isWanted() else { throw .purged }
            let present: ObjectRow?
            do throws(IndexError) {
                present = try index.view.objectRow(record.id)
            } catch {
                // The row may be there: its file must not be replaced.
                state.log.replaceIndex(ifBrokenBy: error)
                throw .unavailable
            }
            do throws(SystemError) {
                if let present {
                    let lines = try state.log.record([job.reference]).lines
                    return CommittedObject(row: present, referenceSequence: lines[0].sequence, isNew: false)
                }
                try nameFile(job.staged, record, log: &state.log)
                do throws(SystemError) {
                    let lines = try state.log.record([.object(record), job.reference]).lines
                    return CommittedObject(
                        row: ObjectRow(sequence: lines[0].sequence, record: record),
                        referenceSequence: lines[1].sequence, isNew: true)
                } catch {
                    // Without a line in the journal the file would be an orphan.
                    state.log.removeFile(record.id, record.fileExtension)
                    throw error
                }
            } catch {
                throw UnstoredReason(error)
            }
        }
    }

    /// Records an alias to a stored object, or, for nil, that the object was uploaded.
    ///
    /// - Parameter isWanted: See ``commit(_:_:if:)``.
    /// - Returns: The sequence of the line; nil if the object is no longer stored.
    func commitReference(
        _ alias: AliasRecord?, to object: StoredObject, if isWanted: () -> Bool
    ) throws(UnstoredReason) -> Int64? {
        try change { state throws(UnstoredReason) in
            guard !state.log.isClosed else { throw .unavailable }
            guard isWanted() else { throw .purged }
            let id = object.record.id
            guard let present = try? index.current.objectRow(id), present.sequence == object.sequence else { return nil }
            do throws(SystemError) {
                return try state.log.record([alias.map { .alias($0, id) } ?? .upload(id)]).lines[0].sequence
            } catch {
                throw UnstoredReason(error)
            }
        }
    }

    private func nameFile(_ staged: StagedFile, _ record: ObjectRecord, log: inout ChangeLog) throws(SystemError) {
        let files = directory.objects
        do throws(SystemError) {
            try files.link(staged, as: record.id, record.fileExtension)
        } catch  where error.code == EEXIST {
            // A file without a row: left by a crash, or not found yet because the index is being rebuilt. After a power loss, an
            // older line of the journal may lead to the new file. Its digest then differs from the record, and the file is removed.
            try files.remove(record.id, record.fileExtension)
            try files.link(staged, as: record.id, record.fileExtension)
        }
        do throws(SystemError) {
            try files.syncNames(beside: record.id)
        } catch {
            log.removeFile(record.id, record.fileExtension)
            throw error
        }
    }

    // MARK: Removing

    /// Records a purge durably and removes what it covers from the index. The caller then calls ``removeFiles(of:)``.
    ///
    /// - Parameter inForce: Called under the lock, after the index was changed.
    /// - Returns: What was removed, and the error if the purge is not durable, such as after ``close()``. It is in force
    ///   nevertheless.
    func applyPurge(_ scope: PurgeScope, inForce: () -> Void) -> (removed: RemovedRows, failure: SystemError?) {
        change { state in
            defer { inForce() }
            return state.log.recordPurge(scope)
        }
    }

    /// Removes the files of objects whose rows are removed, some at a time, so that other changes can happen in between.
    func removeFiles(of objects: [ObjectRow]) {
        var rest = objects[...]
        while !rest.isEmpty {
            let batch = Array(rest.prefix(64))
            rest = rest.dropFirst(64)
            change { $0.log.removeFiles(of: batch) }
        }
    }

    /// Removes one object, unless it was replaced since it was read.
    ///
    /// - Returns: False if it was gone or replaced.
    func forget(_ object: ObjectRow) -> Bool {
        change { state in
            guard !state.log.isClosed, let current = try? index.current.objectRow(object.record.id),
                current.sequence == object.sequence
            else { return false }
            state.log.remove([current])
            return true
        }
    }

    /// Evicts objects until `wanted` bytes or a bounded number of objects are removed, or a file cannot be removed.
    ///
    /// - Returns: The evicted objects, none if there are none or the index cannot be read.
    func evict(atLeast wanted: Int64, visited: VisitedObjects) -> EvictedObjects {
        change { state in
            guard !state.log.isClosed else { return EvictedObjects() }
            // Otherwise the hand would meet rows again that could not be removed the last time.
            state.log.deleteRemovedRows()
            let (objects, failure) = state.hand.select(
                atLeast: wanted, from: index.current, visited: visited, except: index.removedSequences)
            if let failure { state.log.replaceIndex(ifBrokenBy: failure) }
            return state.log.evict(objects)
        }
    }

    // MARK: Housekeeping

    /// Applies the part of the journal that the index lacks, some of it at a time, so that other changes can happen in between.
    func catchUp(unless isEnding: () -> Bool = { false }) {
        while !isEnding(), change({ $0.log.followNextLines() }) {}
    }

    /// Retries changes that failed, such as on a full disk.
    func retryFailedChanges() {
        change { $0.log.retryFailedChanges() }
    }

    /// Whether purges are in force that the journal does not contain.
    var hasUnrecordedPurges: Bool {
        change { $0.log.hasUnrecordedPurges }
    }

    /// Makes the journal durable. A power loss before that loses renditions, but no purges.
    func syncJournal() {
        change { $0.log.syncJournal() }
    }

    /// Removes a file unless the index has a row for it. Returns whether it was removed.
    func removeOrphan(_ id: ObjectID, _ fileExtension: String) -> Bool {
        change { $0.log.removeOrphan(id, fileExtension) }
    }

    /// Identifies a reconciliation that begins now, see ``Reconciler``; nil if there is nothing to do, or not yet: the index must have
    /// applied the whole journal.
    var reconciliation: Int? { change { $0.log.reconciliation } }

    /// Records that files and rows agree after a reconciliation, unless they may disagree again.
    func finishReconciliation(_ begun: Int) {
        change { $0.log.finishReconciliation(begun) }
    }

    /// Whether the index may have rows of evicted objects; see ``FileAgreement/hasEvictedRows``.
    var hasEvictedRows: Bool { change { $0.log.hasEvictedRows } }

    /// Makes the next start look for files without rows.
    func expectOrphans() {
        change { $0.log.expectOrphans() }
    }

    /// Rewrites the journal if most of it is about objects and aliases that are gone. Changes wait only for the last part.
    ///
    /// - Parameter floor: A journal of up to this many bytes is not rewritten.
    func compactJournal(floor: Int64 = 16 << 20, unless isEnding: @escaping () -> Bool) {
        guard let (offset, base) = change({ $0.log.compactionStart(floor: floor) }) else { return }
        let compaction = JournalCompaction(from: index, in: directory, unless: isEnding)
        // A consumed value cannot be captured, so a closure that runs once takes it out of this variable.
        var copy = compaction.write(base: base)
        let isReplaced = change { state in
            guard let journal = copy.take() else { return false }
            return
                (try? state.log.replaceJournal(
                    by: journal, named: JournalCompaction.fileName, copyingFrom: offset, in: directory)) ?? false
        }
        if !isReplaced { compaction.discard() }
    }
}
