internal import CLinux
internal import Glibc
internal import Synchronization
internal import SystemIO

/// Stores renditions and the aliases to them. Every call may block.
struct RenditionPublisher: Sendable {
    let context: CacheContext
    let finder: RenditionFinder
    let evictor: Evictor

    // MARK: Staging

    func createFile(expecting expected: Int64) throws(CacheError) -> StagedFile {
        let reason: UnstoredReason
        do throws(SystemError) {
            let directory = context.directory
            let free = try directory.space().freeBytes
            if let refusal = context.status.refusal {
                reason = refusal
            } else if free - expected >= context.minFreeBytes {
                return try directory.objects.createStaged()
            } else {
                context.refusedBytes.max(expected, ordering: .relaxed)
                reason = free > expected ? .lowSpace : .diskFull
            }
        } catch {
            return try createFileInMemory(because: UnstoredReason(error))
        }
        // Housekeeping evicts to free space.
        context.housekeeping.wake()
        return try createMemory(because: reason)
    }

    /// Creates a file in memory after the disk refused one; see ``Cache/stageInMemory(because:)``.
    func createFileInMemory(because reason: UnstoredReason) throws(CacheError) -> StagedFile {
        // Measures now, because space freed later says nothing about the failure.
        if reason == .diskFull, let free = try? context.directory.space().freeBytes,
            free > context.minFreeBytes
        {
            context.isOverQuota.store(true, ordering: .relaxed)
        }
        context.housekeeping.wake()
        return try createMemory(because: reason)
    }

    private func createMemory(because reason: UnstoredReason) throws(CacheError) -> StagedFile {
        let number = clinux_memfd_create("gifreel-rendition")
        guard number >= 0 else {
            let error = SystemError.last("memfd_create")
            // Housekeeping frees descriptors.
            if error.code == EMFILE { context.housekeeping.wake() }
            throw .stagingFailed(error)
        }
        return StagedFile(SharedDescriptor(OwnedDescriptor(taking: number)), because: reason)
    }

    /// Stages a copy of the first `count` bytes of `file`.
    func createCopy(of file: SharedDescriptor, count: Int) throws(CacheError) -> StagedFile {
        let staged = try createFile(expecting: Int64(count))
        do throws(SystemError) {
            try copyBytes(of: file, count, to: staged.number)
            return staged
        } catch {
            // If the disk filled up meanwhile, memory may still have space.
            guard [ENOSPC, EDQUOT].contains(error.code), !staged.isInMemory else { throw .stagingFailed(error) }
        }
        return try createCopyInMemory(of: file, count: count, because: .diskFull)
    }

    /// Stages a copy of the first `count` bytes of `file` in memory; see ``Cache/stageInMemory(because:)``.
    func createCopyInMemory(
        of file: SharedDescriptor, count: Int, because reason: UnstoredReason
    ) throws(CacheError) -> StagedFile {
        let memory = try createFileInMemory(because: reason)
        try translating(try copyBytes(of: file, count, to: memory.number), to: CacheError.stagingFailed)
        return memory
    }

    // MARK: Publishing

    /// Stores a rendition, or returns the stored one with the same id.
    func process(_ job: PublishJob) throws(CacheError) -> PublishOutcome {
        let record = try job.measure(now: context.clock.unixSeconds)
        context.reached(.publishMeasured)
        let failure: UnstoredReason
        do throws(UnstoredReason) {
            guard job.storing else { throw .unwanted }
            if let reason = job.staged.reason { throw reason }
            guard job.staged.files === context.directory.objects else { throw .directoryLost }
            guard record.length <= context.maxBytes else { throw .tooLarge }
            evictor.makeSpace(for: record.space)
            if let reason = job.sync() {
                failure = reason
            } else {
                context.reached(.publishSynced)
                return try addNew(job, record)
            }
        } catch {
            return unstored(job, record, because: error)
        }
        return try unsynced(job, record, because: failure)
    }

    /// Returns the outcome of a job that no thread accepted, or that takes too long and may still end.
    func unfinished(_ job: PublishJob) throws(CacheError) -> PublishOutcome {
        let record = try job.measure(now: context.clock.unixSeconds)
        guard job.storing else { return unstored(job, record, because: .unwanted) }
        guard !job.staged.isInMemory else { return unstored(job, record, because: job.staged.reason ?? .unavailable) }
        return try unsynced(job, record, because: .unavailable)
    }

    /// Returns the outcome after a sync that failed or may still fail. The page cache may then lose what the disk lacks, so the
    /// file is not served; its bytes are copied to memory and verified.
    private func unsynced(
        _ job: PublishJob, _ record: ObjectRecord, because reason: UnstoredReason
    ) throws(CacheError) -> PublishOutcome {
        let memory = try createFileInMemory(because: reason)
        do throws(SystemError) {
            try copyBytes(of: job.staged.descriptor, Int(record.length), to: memory.number)
            guard try ContentDigest(of: memory.descriptor) == record.content else { throw SystemError("fdatasync", code: EIO) }
        } catch {
            throw .stagingFailed(error)
        }
        var job = job
        job.staged = memory
        return unstored(job, record, because: reason)
    }

    private func addNew(_ job: PublishJob, _ record: ObjectRecord) throws(UnstoredReason) -> PublishOutcome {
        var epoch = job.epoch
        var committed = try commit(job, record, &epoch)
        var present: StoredObject?
        if !committed.isNew {
            present = try? finder.open(committed.row, epoch: epoch)
            if present == nil {
                // The object was removed, because its file was missing or damaged. A file that cannot be read, which may have
                // another owner or be on a bad sector, is replaced as well.
                if !DescriptorLimit.isShort() { finder.removeCorrupt(committed.row) }
                committed = try commit(job, record, &epoch)
            }
        }
        context.reached(.publishCommitted)
        context.counters.update { counters in
            counters.refusal = nil
            if committed.isNew { counters.published += 1 }
        }
        if evictor.isNeeded { context.housekeeping.wake() }

        let object: StoredObject
        if committed.isNew {
            context.verified.insert(committed.row.sequence)
            object = StoredObject(record: record, descriptor: job.readOnly(), sequence: committed.row.sequence)
        } else {
            guard let present else { throw .unavailable }
            object = present
        }
        if committed.isNew { context.hot.insert(object, epoch: epoch) }
        let rendition = CachedRendition(
            object: object, alias: job.alias, aliasSequence: committed.aliasSequence, epoch: epoch)
        guard context.hot.insert(rendition) else { throw .purged }
        return committed.isNew ? .stored(rendition) : .existing(rendition)
    }

    private func commit(
        _ job: PublishJob, _ record: ObjectRecord, _ epoch: inout Epoch
    ) throws(UnstoredReason) -> CommittedObject {
        try context.changes.withLock { changes throws(UnstoredReason) in
            try changes.commit(job, record) { isWanted(job.alias, job.id, &epoch) }
        }
    }

    func unstored(_ job: PublishJob, _ record: ObjectRecord, because cause: UnstoredReason) -> PublishOutcome {
        var reason = cause
        // No other cache may store what a purge covers, whatever keeps it from being stored here.
        if cause != .unwanted, context.purges.overtook(job.epoch, sourceURL: job.alias?.sourceURL, object: job.id) {
            reason = .purged
        }
        // Whether the disk still takes too long, ``DiskWork`` knows.
        let isOfDisk = ![.purged, .tooLarge, .unwanted, .unavailable].contains(reason)
        context.counters.update { counters in
            counters.unstored += 1
            if isOfDisk { counters.refusal = reason }
        }
        if isOfDisk { context.housekeeping.wake() }
        let object = StoredObject(
            record: record, descriptor: job.readOnly(), sequence: 0,
            memory: job.staged.isInMemory ? job.staged.descriptor : nil)
        return .unstored(CachedRendition(object: object, alias: job.alias, epoch: job.epoch), reason)
    }

    /// Whether no purge after `epoch` covers the rendition. If none does, updates `epoch` to the current one. The caller holds
    /// the store's lock, so that no purge can come in between.
    private func isWanted(_ alias: AliasRecord?, _ object: ObjectID, _ epoch: inout Epoch) -> Bool {
        guard !context.purges.overtook(epoch, sourceURL: alias?.sourceURL, object: object) else { return false }
        epoch = context.purges.epoch.began(at: epoch.began)
        return true
    }

    // MARK: Linking

    /// Records an alias to a stored object; nil if there is none.
    func addAlias(_ alias: AliasRecord, to id: ObjectID, epoch: Epoch) -> PublishOutcome? {
        guard let object = try? finder.storedObject(id) else { return nil }
        return recordReference(alias, to: object, epoch: epoch)
    }

    /// Returns the outcome of an alias that no thread accepted, or that takes too long and may still be recorded; nil if there is no
    /// such object.
    func unfinishedAlias(_ alias: AliasRecord, to id: ObjectID, epoch: Epoch) -> PublishOutcome? {
        guard let object = try? finder.storedObject(id) else { return nil }
        let isPurged = context.purges.overtook(epoch, sourceURL: alias.sourceURL, object: id)
        return unlinked(alias, to: object, epoch, because: isPurged ? .purged : .unavailable)
    }

    /// Looks up an object for the client that uploaded its source, and records the upload.
    func recordUpload(of id: ObjectID) -> CachedRendition? {
        let epoch = context.purges.epoch
        guard let object = try? finder.storedObject(id) else { return nil }
        context.hot.visited.note(object)
        return recordReference(nil, to: object, epoch: epoch)?.rendition
    }

    /// Renews an alias after the origin confirmed it; nil if it is gone or was purged meanwhile.
    func renewAlias(
        _ key: AliasKey, validators: Validators, times: OriginTimes, epoch: Epoch
    ) -> CachedRendition? {
        guard let current = try? finder.rendition(under: key), var alias = current.alias else { return nil }
        alias.validators = Validators(
            etag: validators.etag ?? alias.validators.etag,
            lastModified: validators.lastModified ?? alias.validators.lastModified)
        alias.times = times
        guard case .existing(let rendition)? = recordReference(alias, to: current.object, epoch: epoch) else { return nil }
        return rendition
    }

    /// Records an alias to an open object, or, for nil, that it was uploaded. Nil if the object is no longer stored.
    private func recordReference(_ alias: AliasRecord?, to object: StoredObject, epoch: Epoch) -> PublishOutcome? {
        var reason = UnstoredReason.purged
        var current = epoch
        do throws(UnstoredReason) {
            let sequence = try context.changes.withLock { changes throws(UnstoredReason) in
                try changes.commitReference(alias, to: object, began: epoch.began) {
                    isWanted(alias, object.record.id, &current)
                }
            }
            guard let sequence else { return nil }
            let rendition = CachedRendition(object: object, alias: alias, aliasSequence: sequence, epoch: current)
            if context.hot.insert(rendition) { return .existing(rendition) }
        } catch {
            reason = error
        }
        return unlinked(alias, to: object, epoch, because: reason)
    }

    private func unlinked(
        _ alias: AliasRecord?, to object: StoredObject, _ epoch: Epoch, because reason: UnstoredReason
    ) -> PublishOutcome {
        context.counters.update { $0.unstored += 1 }
        return .unstored(CachedRendition(object: object, alias: alias, epoch: epoch), reason)
    }
}
