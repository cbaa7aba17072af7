internal import Glibc
internal import SystemIO

extension IndexChanges {
    /// Adds a rendition to the cache: names its file, and records it. If the object is stored already, only its reference is
    /// recorded.
    ///
    /// - Parameter isWanted: Called under the lock that purges also take, so that a later purge finds the rendition.
    mutating func commit(
        _ job: PublishJob, _ record: ObjectRecord, if isWanted: () -> Bool
    ) throws(UnstoredReason) -> CommittedObject {
        guard isWanted() else { throw .purged }
        if let refusal = status.refusal { throw refusal }
        if let present = try nameFile(job.staged, record) {
            let alias = try refer(job.alias, to: present.sequence, began: job.epoch.began)
            return CommittedObject(row: present, aliasSequence: alias, isNew: false)
        }
        let object = takeSequences(2)
        do throws(LedgerError) {
            try change { tables in
                try tables.insert(record, object, uploadBegan: job.alias == nil ? job.epoch.began : nil)
                if let alias = job.alias {
                    try tables.insert(alias, leadingTo: object, object + 1, began: job.epoch.began)
                }
            }
        } catch {
            // Without a row the file would be an orphan.
            removeFile(record.name)
            throw UnstoredReason(error)
        }
        status.countCommit()
        return CommittedObject(
            row: ObjectRow(
                sequence: object, record: record,
                upload: job.alias == nil ? .init(sequence: object, began: job.epoch.began) : .init()),
            aliasSequence: job.alias == nil ? 0 : object + 1, isNew: true)
    }

    /// Records an alias to a stored object, or, for nil, that the object was uploaded.
    ///
    /// - Parameters:
    ///   - began: When the request to the origin, or the upload, began.
    ///   - isWanted: See ``commit(_:_:if:)``.
    /// - Returns: The sequence of the alias, 0 without one; nil if the object is no longer stored.
    mutating func commitReference(
        _ alias: AliasRecord?, to object: StoredObject, began: Int64, if isWanted: () -> Bool
    ) throws(UnstoredReason) -> Int64? {
        guard isWanted() else { throw .purged }
        if let refusal = status.refusal { throw refusal }
        let present = try? read { try $0.objectRow(object.record.id) }
        guard let present, present.sequence == object.sequence else { return nil }
        return try refer(alias, to: object.sequence, began: began)
    }

    /// Records an alias to a stored object, or, for nil, that the object was uploaded.
    ///
    /// - Returns: The sequence of the alias, 0 without one.
    private mutating func refer(
        _ alias: AliasRecord?, to object: Int64, began: Int64
    ) throws(UnstoredReason) -> Int64 {
        let sequence = takeSequences(1)
        do throws(LedgerError) {
            try change { tables in
                if let alias {
                    try tables.insert(alias, leadingTo: object, sequence, began: began)
                } else {
                    try tables.markUploaded(object, sequence, began: began)
                }
            }
        } catch {
            throw UnstoredReason(error)
        }
        status.countCommit()
        return alias == nil ? 0 : sequence
    }

    /// Links a file to its name, durably. The name shows whether the object may be stored already, so a new object usually
    /// needs no query.
    ///
    /// - Returns: The row of the object if it is stored already; its file stays.
    private mutating func nameFile(_ staged: StagedFile, _ record: ObjectRecord) throws(UnstoredReason) -> ObjectRow? {
        let files = directory.objects
        do throws(SystemError) {
            try files.link(staged, as: record.name)
        } catch  where error.code == EEXIST {
            if let present = try currentRow(record.id) { return present }
            // A file without a row: left by a crash or a purge.
            do throws(SystemError) {
                try files.remove(record.name)
                try files.link(staged, as: record.name)
            } catch {
                throw UnstoredReason(error)
            }
        } catch {
            throw UnstoredReason(error)
        }
        do throws(SystemError) {
            try files.syncNames(beside: record.name)
        } catch {
            removeFile(record.name)
            throw UnstoredReason(error)
        }
        return nil
    }

    /// The row of an object whose file is about to be replaced.
    private mutating func currentRow(_ id: ObjectID) throws(UnstoredReason) -> ObjectRow? {
        do throws(LedgerError) {
            return try read { try $0.objectRow(id) }
        } catch {
            note(error)
            throw UnstoredReason(error)
        }
    }
}
