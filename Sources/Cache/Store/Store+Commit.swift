internal import Glibc
internal import SystemIO

/// The one place where a rendition becomes part of the cache.
extension Store {
    struct Committed: Sendable {
        let object: ObjectRow
        /// The sequence of the line that records its alias or its upload.
        let referenceSequence: Int64
        /// False when the object was there already.
        let isNew: Bool
    }

    /// Names the file, writes journal and index.
    ///
    /// - Parameter isWanted: Asked under the lock that purges take too: after it said yes, a purge comes later and finds it.
    func commit(_ job: PublishJob, _ record: ObjectRecord, if isWanted: () -> Bool) throws(UnstoredFailure) -> Committed {
        try change { state throws(UnstoredFailure) in
            guard !state.isClosed else { throw UnstoredFailure(.unavailable) }
            guard isWanted() else { throw UnstoredFailure(.purged) }
            do throws(SystemError) {
                if let present = try? view().object(record.id) {
                    let lines = try self.record([reference(of: job)], durable: false, in: &state).lines
                    return Committed(object: present, referenceSequence: lines.last?.sequence ?? 0, isNew: false)
                }
                try name(job.staged, record)
                return try recordObject(record, of: job, in: &state)
            } catch {
                throw UnstoredFailure(UnstoredReason(error))
            }
        }
    }

    /// Records an alias to an object that is stored, or that the object was uploaded.
    ///
    /// - Returns: The line's sequence; nil when the object is not stored any more.
    func commit(_ alias: AliasRecord?, to object: StoredObject, if isWanted: () -> Bool) throws(UnstoredFailure) -> Int64? {
        try change { state throws(UnstoredFailure) in
            guard !state.isClosed else { throw UnstoredFailure(.unavailable) }
            guard isWanted() else { throw UnstoredFailure(.purged) }
            guard let present = try? index.object(object.record.id), present.sequence == object.sequence else { return nil }
            do throws(SystemError) {
                let id = object.record.id
                let entry = alias.map { JournalEntry.alias($0, id) } ?? .upload(id)
                return try record([entry], durable: false, in: &state).lines.first?.sequence
            } catch {
                throw UnstoredFailure(UnstoredReason(error))
            }
        }
    }

    private func name(_ staged: StagedFile, _ record: ObjectRecord) throws(SystemError) {
        do throws(SystemError) {
            try directory.link(staged, as: record.id, record.fileExtension, replacing: false)
        } catch  where error.code == EEXIST {
            // A file that nothing knows of: left over from a crash, or not yet found while the index is made anew.
            try directory.link(staged, as: record.id, record.fileExtension, replacing: true)
        }
        do throws(SystemError) {
            try directory.syncNames(beside: record.id)
        } catch {
            _ = try? directory.remove(record.id, record.fileExtension)
            throw error
        }
    }

    private func recordObject(
        _ record: ObjectRecord, of job: PublishJob, in state: inout State
    ) throws(SystemError) -> Committed {
        let entries = [.object(record), reference(of: job)]
        do throws(SystemError) {
            let lines = try self.record(entries, durable: false, in: &state).lines
            return Committed(
                object: ObjectRow(sequence: lines[0].sequence, record: record),
                referenceSequence: lines[1].sequence, isNew: true)
        } catch {
            // Without a line in the journal the file would be an orphan.
            _ = try? directory.remove(record.id, record.fileExtension)
            throw error
        }
    }

    /// How the object is reached: by the alias of its source, or by its id after an upload.
    private func reference(of job: PublishJob) -> JournalEntry {
        job.alias.map { .alias($0, job.id) } ?? .upload(job.id)
    }
}
