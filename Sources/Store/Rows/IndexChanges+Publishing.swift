internal import CLinux
internal import Glibc
package import SystemIO

struct PublishJob: Sendable {
    var staged: StagedFile
    let id: ObjectID
    let fileExtension: String
    let facts: [UInt8]
    let alias: AliasRecord?
    /// Seconds since 1970 at which another node published it.
    var created: Int64?
    let epoch: Epoch
    var storing = true

    /// Reads the whole staged file and returns its record.
    func measure(now: Int64) throws(CacheError) -> ObjectRecord {
        let (content, length) = try translating(try ContentDigest.measure(staged.descriptor)) { (error: SystemError) in
            CacheError.stagedFileUnusable(reason: error.description)
        }
        guard length > 0 else { throw .stagedFileUnusable(reason: "it is empty") }
        return ObjectRecord(
            id: id, fileExtension: fileExtension, length: Int64(length), content: content,
            created: min(now, created ?? now), facts: facts)
    }

    /// Makes the bytes durable, and returns why that failed. Must be called before the file is named, so that no name ever
    /// leads to an incomplete file.
    func sync() -> UnstoredReason? {
        do throws(SystemError) {
            try retryingOnInterrupt("fdatasync") { fdatasync(staged.number) }
            return nil
        } catch {
            return UnstoredReason(error)
        }
    }

    /// The same file, open for reading only; the staged descriptor if it cannot be opened again.
    func readOnly() -> SharedDescriptor {
        let number = clinux_openat(AT_FDCWD, "/proc/self/fd/\(staged.number)", O_RDONLY, 0)
        return number >= 0 ? SharedDescriptor(OwnedDescriptor(taking: number)) : staged.descriptor
    }
}

/// A rendition that became part of the cache.
struct CommittedObject: Sendable {
    let row: ObjectRow
    /// The sequence of its alias; 0 after an upload.
    let aliasSequence: Int64
    /// False if the object was stored already.
    let isNew: Bool
}

extension UnstoredReason {
    /// The reason that corresponds to an error of the cache's file system.
    package init(_ error: SystemError) {
        switch error.code {
        case ENOSPC, EDQUOT, EFBIG: self = .diskFull
        case EROFS, EACCES, EPERM: self = .readOnly
        case ENOENT, ESTALE, ENOTDIR, EXDEV: self = .directoryLost
        default: self = .failed(error)
        }
    }

    init(_ error: LedgerError) {
        switch error.kind {
        case .fullDisk: self = .diskFull
        case .readOnly: self = .readOnly
        case .closed: self = .unavailable
        case .damage, .failure: self = .failed(SystemError("ledger", code: EIO))
        }
    }
}

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

    /// Records an alias to a stored object and returns its sequence; for nil, records that the object was uploaded, and returns 0.
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
