internal import CLinux
internal import Glibc
internal import Synchronization
internal import SystemIO

/// Publishing.
extension Cache {
    /// The epoch to note before work on a source begins, and to hand to ``publish(_:as:fileExtension:facts:alias:epoch:)``.
    /// Nil for an uploaded GIF.
    package func epoch(for sourceURL: String?) -> Epoch {
        purges.epoch
    }

    /// A file to write a rendition into: on the cache's file system, or in memory where the disk takes no more.
    ///
    /// - Parameter expected: Bytes that it may come to; where the disk has no room for so many, the file is in memory.
    /// - Throws: ``CacheError/stagingFailed(_:)`` when not even memory gives a file.
    package func stage(expecting expected: Int64 = 0) throws(CacheError) -> StagedFile {
        let reason: UnstoredReason
        do throws(SystemError) {
            let directory = store.directory
            let free = try directory.freeBytes()
            if free - expected >= configuration.minFreeBytes { return try directory.stage() }
            reason = free > expected ? .lowSpace : .diskFull
        } catch {
            reason = UnstoredReason(error)
        }
        // Makes room, or opens the directory again.
        housekeeping.wake()
        return try stageInMemory(because: reason)
    }

    /// A file in memory to write a rendition into, for when the disk filled up while it was written. It is not stored.
    package func stageInMemory(because reason: UnstoredReason = .diskFull) throws(CacheError) -> StagedFile {
        let number = clinux_memfd_create("gifreel-rendition")
        guard number >= 0 else { throw .stagingFailed(.last("memfd_create")) }
        return StagedFile(inMemory: SharedDescriptor(OwnedDescriptor(taking: number)), because: reason)
    }

    /// Stores a finished rendition and leads its alias to it. Returns once both are durable and can be found.
    ///
    /// - Parameters:
    ///   - staged: Holds exactly the rendition's bytes; nobody may write to it any more.
    ///   - object: Its name. If it is stored already, that one is used.
    ///   - fileExtension: One to eight of `a…z 0…9`.
    ///   - facts: A few bytes to keep with it, at most ``ObjectRecord/maxFactsCount``.
    ///   - alias: Its source; nil for an uploaded GIF. An uploaded rendition outlives purges of URLs with the same bytes.
    ///   - epoch: As noted before its source was fetched.
    ///   - storing: False where its origin forbids it (`Cache-Control: no-store`): it is measured and can be answered with,
    ///     no more.
    /// - Returns: The rendition, and whether it is stored. Disk trouble is not an error: the rendition can still be answered
    ///   with.
    /// - Throws: ``CacheError/stagedFileUnusable(reason:)``.
    package func publish(
        _ staged: StagedFile, as object: ObjectID, fileExtension: String, facts: [UInt8] = [], alias: AliasRecord?,
        epoch: Epoch, storing: Bool = true
    ) async throws(CacheError) -> PublishOutcome {
        guard ObjectRecord.isExtension(fileExtension) else { throw .stagedFileUnusable(reason: "its extension is not allowed") }
        guard facts.count <= ObjectRecord.maxFactsCount else { throw .stagedFileUnusable(reason: "its facts are too long") }
        guard staged.take() else { throw .stagedFileUnusable(reason: "it was published before") }
        let job = PublishJob(
            staged: staged, id: object, fileExtension: fileExtension, facts: facts, alias: alias, epoch: epoch,
            storing: storing)
        let result = await publishers.run { self.publish(job) }
        // No thread took it: it is answered from its own file, measured here for want of a better place.
        return try (result ?? unstored(job, because: .unavailable)).get()
    }

    // MARK: On a thread of the cache

    func publish(_ job: PublishJob) -> Result<PublishOutcome, CacheError> {
        let store = store
        let record: ObjectRecord
        do throws(CacheError) {
            record = try job.measure(now: clock.unixSeconds())
        } catch {
            return .failure(error)
        }
        reached(.publishMeasured)
        if !job.storing { return .success(unstored(job, record, because: .unwanted)) }
        if let reason = job.staged.reason { return .success(unstored(job, record, because: reason)) }
        // What is stored but damaged is found out and removed here, so that the new file takes its place.
        if let present = existing(job.id, in: store) {
            if let outcome = lead(job.alias, to: present, epoch: job.epoch, in: store) { return .success(outcome) }
        }
        do throws(UnstoredFailure) {
            return .success(try keep(job, record, in: store))
        } catch {
            return .success(unstored(job, record, because: error.reason))
        }
    }

    private func keep(_ job: PublishJob, _ record: ObjectRecord, in store: Store) throws(UnstoredFailure) -> PublishOutcome {
        guard job.staged.directory === store.directory else { throw UnstoredFailure(.directoryLost) }
        guard record.length <= configuration.maxBytes else { throw UnstoredFailure(.tooLarge) }
        makeRoom(for: record.length, in: store)
        try job.sync()
        reached(.publishSynced)
        var epoch = job.epoch
        let committed = try store.commit(job, record) { self.isWanted(job.alias, job.id, &epoch) }
        reached(.publishCommitted)
        counters.isStoring.store(true, ordering: .relaxed)
        if store.currentTotals.bytes > highWatermark { housekeeping.wake() }

        let object: StoredObject
        if committed.isNew {
            verified.insert(committed.object.sequence)
            object = StoredObject(record: record, descriptor: job.readOnly(), sequence: committed.object.sequence)
            counters.published.count()
            counters.publishedBytes.count(record.length)
            if job.alias == nil { object.markUploaded() }
            keepHot(object, epoch: epoch)
        } else if let present = open(committed.object, in: store, epoch: epoch) {
            object = present
            if job.alias == nil { object.markUploaded() }
        } else {
            throw UnstoredFailure(.unavailable)
        }
        let rendition = CachedRendition(
            object: object, alias: job.alias, aliasSequence: job.alias == nil ? 0 : committed.referenceSequence, epoch: epoch)
        guard keepHot(rendition) else { throw UnstoredFailure(.purged) }
        return committed.isNew ? .stored(rendition) : .existing(rendition)
    }

    /// Whether no purge covers what was begun in `epoch`; then `epoch` becomes the present one. Under the store's lock, so
    /// that no purge can come in between.
    func isWanted(_ alias: AliasRecord?, _ object: ObjectID, _ epoch: inout Epoch) -> Bool {
        guard !purges.overtook(epoch, sourceURL: alias?.sourceURL, object: object) else { return false }
        epoch = purges.epoch
        return true
    }

    func existing(_ id: ObjectID, in store: Store) -> StoredObject? {
        let epoch = purges.epoch
        guard let row = read(from: store, { (view) throws(IndexError) in try view.object(id) }) else { return nil }
        return open(row, in: store, epoch: epoch)
    }

    private func unstored(_ job: PublishJob, because reason: UnstoredReason) -> Result<PublishOutcome, CacheError> {
        do throws(CacheError) {
            let record = try job.measure(now: clock.unixSeconds())
            return .success(unstored(job, record, because: reason))
        } catch {
            return .failure(error)
        }
    }

    private func unstored(_ job: PublishJob, _ record: ObjectRecord, because reason: UnstoredReason) -> PublishOutcome {
        counters.unstored.count()
        if ![.purged, .tooLarge, .unwanted].contains(reason) {
            counters.isStoring.store(false, ordering: .relaxed)
            housekeeping.wake()
        }
        let object = StoredObject(record: record, descriptor: job.readOnly(), sequence: 0)
        return .unstored(CachedRendition(object: object, alias: job.alias, epoch: job.epoch), reason)
    }
}

extension UnstoredReason {
    init(_ error: SystemError) {
        switch error.code {
        case ENOSPC, EDQUOT, EFBIG: self = .diskFull
        case EROFS, EACCES, EPERM: self = .readOnly
        case ENOENT, ESTALE, ENOTDIR, EXDEV: self = .directoryLost
        default: self = .failed(error)
        }
    }
}
