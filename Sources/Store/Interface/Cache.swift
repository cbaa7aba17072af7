internal import Synchronization
package import SystemIO

/// The local store of finished renditions: content-addressed files, their rows in a database, a table of renditions in use,
/// eviction and purges.
///
/// **Threads.** ``hotAlias(_:)``, ``hotObject(_:)``, ``epoch``, ``freshness(of:)`` and ``statistics()`` never wait for
/// a disk and may be called on an I/O thread. The `async` methods work on threads of the cache and block neither the caller's
/// thread nor Swift's cooperative pool. ``init(configuration:owners:clock:report:)`` and ``close()`` block.
///
/// **Guarantees.** A returned rendition is complete and unchanged since publication: its length is compared whenever it is
/// opened, its SHA-256 when it is first opened after startup. After a purge returns, no lookup returns anything older that it
/// covers, whatever was in flight. A rendition whose file is open stays readable after eviction or purge. If the disk fails, a
/// lookup is a miss and a rendition is not stored, never an error.
///
/// ```
/// let cache = try Cache(configuration: configuration)
/// if let rendition = cache.hotAlias(key) { return rendition }  // on an I/O thread
/// if let rendition = try await cache.rendition(for: key, countsMiss: true) { return rendition }
/// ```
///
/// The owner must call ``close()``; until then the cache's threads keep it alive.
package final class Cache: Sendable {
    let context: CacheContext
    private let lookups: any BlockingWork
    private let verifiers: any BlockingWork
    private let publishers: DiskWork
    /// Reads and writes facts, without waiting for publishes.
    private let documents: any BlockingWork
    private let purgers: DiskWork
    /// Returns a unique token for a purge. The token determines which database pages the purge changes.
    private let purgeToken: @Sendable () -> String
    private let isClosed = Atomic(false)
    // The synchronous operations behind the `async` methods; tests call them on threads of their own.
    let finder: RenditionFinder
    private let quickFinder: RenditionFinder
    let publisher: RenditionPublisher
    let evictor: Evictor
    let housekeeper: Housekeeper

    /// Opens and locks the directory, creating it if needed.
    ///
    /// - Parameters:
    ///   - owners: The other owners of tables in its database.
    ///   - report: Receives events that an operator should know, on any thread; it must not block.
    /// - Throws: An error of the directory or the ledger, or ``CacheError/noThread``.
    package convenience init(
        configuration: CacheConfiguration, owners: [Ledger.Tables] = [], clock: TimeSource = .system,
        report: @escaping @Sendable (CacheEvent) -> Void = { _ in }
    ) throws(CacheError) {
        try self.init(configuration: configuration, owners: owners, clock: clock, report: report, onStep: nil)
    }

    init(
        configuration: CacheConfiguration, owners: [Ledger.Tables] = [], clock: TimeSource,
        report: @escaping @Sendable (CacheEvent) -> Void = { _ in }, threads: CacheThreads = .system,
        purgeToken: @escaping @Sendable () -> String = StagedFile.uniqueName, onStep: (@Sendable (Step) -> Void)?
    ) throws(CacheError) {
        self.purgeToken = purgeToken
        let context = try CacheContext(
            configuration: configuration, owners: owners, clock: clock, report: report, onStep: onStep)
        self.context = context
        let limit = configuration.queueLimit
        lookups = threads.create(configuration.lookupThreads, limit, "cache-lookup")
        verifiers = threads.create(1, limit, "cache-verify")
        publishers = DiskWork(threads.create(configuration.publishThreads, limit, "cache-publish"), clock: clock)
        documents = threads.create(configuration.lookupThreads, limit, "cache-facts")
        // A purge is never refused.
        purgers = DiskWork(threads.create(1, .max, "cache-purge"), clock: clock)
        finder = RenditionFinder(context: context)
        quickFinder = RenditionFinder(context: context, hashesLargeFiles: false)
        evictor = Evictor(context)
        publisher = RenditionPublisher(context: context, finder: finder, evictor: evictor)
        let housekeeper = Housekeeper(context, finder: finder, evictor: evictor)
        self.housekeeper = housekeeper
        guard threads.includeHousekeeping else { return }
        if !context.housekeeping.start(name: "cache-keeper", { housekeeper.runRound() }) {
            close()
            throw .noThread
        }
    }

    /// Ends the threads after their current work, marks the store as cleanly closed, and unlocks the directory. From then on,
    /// lookups find nothing and publishes are not stored. Blocks; must not be called on a thread of the cache. A second call
    /// does nothing.
    package func close() {
        guard !isClosed.exchange(true, ordering: .relaxed) else { return }
        context.housekeeping.close()
        lookups.close()
        verifiers.close()
        purgers.threads.close()
        publishers.threads.close()
        documents.close()
        context.purgeObservers.withLock { $0 = [] }
        context.lateObserver.withLock { $0 = nil }
        forgetHot()
        context.changes.withLock { $0.close() }
    }

    /// Removes every rendition from memory, together with the value attached to it. The next lookups use the disk. Any thread.
    package func forgetHot() {
        context.hot.removeAll()
    }

    /// The configuration at startup, without later changes by ``setLimits(maxBytes:minFreeBytes:)``.
    package var configuration: CacheConfiguration { context.configuration }

    package var maxBytes: Int64 { context.maxBytes }

    /// Changes ``CacheConfiguration/maxBytes`` and ``CacheConfiguration/minFreeBytes``. The next rounds of housekeeping evict
    /// what exceeds a lower limit.
    package func setLimits(maxBytes: Int64, minFreeBytes: Int64) {
        context.limits.withLock { $0 = (maxBytes, minFreeBytes) }
        context.housekeeping.wake()
    }

    /// The database, which also contains tables of other parts of the server; see ``init(configuration:owners:clock:report:)``.
    package var ledger: Ledger { context.ledger }

    // MARK: Looking up

    /// The current version. The result of a lookup is valid while the version equals the one noted before the lookup. Never
    /// waits for a disk.
    package var version: CacheVersion {
        CacheVersion(epoch: context.purges.epoch, commits: context.status.commitCount)
    }

    /// The rendition that an alias leads to, if it is in use and its file open. Never waits for a disk.
    package func hotAlias(_ key: AliasKey) -> CachedRendition? {
        context.hot.use(key)
    }

    /// The rendition with that id, if it is in use and its file open. Never waits for a disk.
    ///
    /// Returns nil for an object that ``holdAliases(_:)`` holds, or that ``revalidateAll(_:)`` doubts;
    /// ``rendition(for:countsMiss:)`` decides on it.
    package func hotObject(_ id: ObjectID) -> CachedRendition? {
        guard let found = context.hot.use(id), !context.doubts.isHeld(found.object.sequence) else { return nil }
        return found
    }

    /// The rendition that an alias leads to, from memory, or from the database and the disk on a thread of the cache.
    ///
    /// - Parameter countsMiss: Whether to count a miss if there is none; false if the request was already counted.
    /// - Throws: ``CacheError/busy`` if too many lookups wait or the cache is closed: a rendition may exist.
    package func rendition(for key: AliasKey, countsMiss: Bool) async throws(CacheError) -> CachedRendition? {
        if let found = hotAlias(key) { return found }
        return try await find(countsMiss: countsMiss) { finder throws(RenditionFinder.Unverified) in
            try finder.rendition(under: key)
        }
    }

    /// Returns the rendition with that id, looked up and counted as by its alias.
    package func rendition(for id: ObjectID, countsMiss: Bool) async throws(CacheError) -> CachedRendition? {
        if let found = hotObject(id) { return found }
        return try await find(countsMiss: countsMiss) { finder throws(RenditionFinder.Unverified) in
            try finder.rendition(with: id)
        }
    }

    /// The rendition with that id, for the client that uploaded its source. Records the upload, so that the object outlives a
    /// purge of a URL with the same bytes, and one that was accepted before. If the record cannot be written, the rendition is
    /// still returned.
    ///
    /// - Throws: ``CacheError/busy`` if too much work waits or the cache is closed: a rendition may exist.
    package func uploadedObject(_ id: ObjectID) async throws(CacheError) -> CachedRendition? {
        guard let found = await publishers.run({ [publisher] in publisher.recordUpload(of: id) }) else {
            return try await rendition(for: id, countsMiss: true)
        }
        return try count(found, countsMiss: true)
    }

    /// Looks up on a lookup thread, or, if a large file has to be hashed, on a verifier thread, so that no miss waits for it.
    private func find(
        countsMiss: Bool,
        _ query: @escaping @Sendable (RenditionFinder) throws(RenditionFinder.Unverified) -> CachedRendition?
    ) async throws(CacheError) -> CachedRendition? {
        let found = await lookups.run { [quickFinder] in
            Result { () throws(RenditionFinder.Unverified) in try query(quickFinder) }
        }
        return switch found {
        case nil: try count(nil, countsMiss: countsMiss)
        case .success(let rendition)?: try count(.some(rendition), countsMiss: countsMiss)
        case .failure?: try count(await verifiers.run { [finder] in try? query(finder) }, countsMiss: countsMiss)
        }
    }

    /// - Parameter found: The result of the lookup; nil if no thread accepted the work.
    private func count(_ found: CachedRendition??, countsMiss: Bool) throws(CacheError) -> CachedRendition? {
        guard let found else {
            context.counters.update { $0.refused += 1 }
            throw .busy
        }
        context.counters.update { counters in
            if found != nil { counters.diskHits += 1 } else if countsMiss { counters.misses += 1 }
        }
        return found
    }

    /// Returns the freshness of the rendition's alias. A rendition found by its id is always fresh: the id identifies the
    /// content.
    package func freshness(of rendition: CachedRendition) -> Freshness {
        guard let times = rendition.aliasTimes else { return .fresh(remaining: configuration.freshFor) }
        return freshness(times, sequence: rendition.aliasSequence)
    }

    private func freshness(_ times: OriginTimes, sequence: Int64) -> Freshness {
        let doubt = context.doubts.doubt(ofAlias: sequence)
        if doubt == .certain { return .expired }
        let freshness = Freshness(
            fetchedAt: times.fetchedAt, freshFor: times.freshFor ?? configuration.freshFor,
            staleFor: times.mustRevalidate ? 0 : configuration.staleFor, now: context.clock.steadySeconds)
        return doubt == nil || freshness == .expired ? freshness : .unconfirmed
    }

    /// The renditions of a source that are stored, the newest first, at most ``mostListed``. Does not count as use.
    ///
    /// - Throws: ``CacheError/busy`` if too many lookups wait, ``CacheError/closed`` if the database fails or the cache is
    ///   closed.
    package func list(of sourceURL: String) async throws(CacheError) -> [ListedRendition] {
        try await list { try $0.aliases(of: sourceURL, limit: Self.mostListed) }
    }

    /// The renditions under these keys that are stored. Does not count as use.
    ///
    /// - Throws: As ``list(of:)``.
    package func list(_ keys: [AliasKey]) async throws(CacheError) -> [ListedRendition] {
        try await list { tables in try keys.compactMap { try tables.aliasRow($0) } }
    }

    private func list(
        _ rows: @escaping @Sendable (CacheTables) throws -> [AliasRow]
    ) async throws(CacheError) -> [ListedRendition] {
        let rows = try await query(rows)
        let now = context.clock.steadySeconds
        return rows.map { row in
            let (alias, object) = (row.record, row.object.record)
            return ListedRendition(
                rendition: alias.rendition, object: object, age: max(0, now - alias.times.fetchedAt),
                freshness: freshness(alias.times, sequence: row.sequence), uses: context.hot.uses(of: object.id))
        }
    }

    /// Up to ``mostListed`` canonical URLs of sources with stored renditions, in the order of their bytes.
    ///
    /// - Parameter url: The last URL of the previous call; empty for the first.
    /// - Throws: As ``list(of:)``.
    package func sources(after url: String) async throws(CacheError) -> [String] {
        try await query { try $0.sources(after: url, limit: Self.mostListed) }
    }

    private func query<Value: Sendable>(
        _ body: @escaping @Sendable (CacheTables) throws -> Value
    ) async throws(CacheError) -> Value {
        guard let found = await lookups.run({ [context] in context.query(body) }) else { throw .busy }
        guard let value = found else { throw .closed }
        return value
    }

    private static let mostListed = 1000

    /// Returns the freshness of a source.
    ///
    /// - Parameters:
    ///   - fetchedAt: The time of the fetch by ``TimeSource/steadySeconds``.
    ///   - freshFor: Seconds, if the origin limits them.
    package func freshness(fetchedAt: Int64, freshFor: Int64?) -> Freshness {
        Freshness(
            fetchedAt: fetchedAt, freshFor: freshFor ?? configuration.freshFor, staleFor: configuration.staleFor,
            now: context.clock.steadySeconds)
    }

    /// Drops a rendition whose contents its reader cannot use. Returns once no lookup finds it any more.
    ///
    /// If the cache is closing or its threads are busy, the rendition stays; the next reader drops it.
    package func discardCorrupt(_ rendition: CachedRendition) async {
        let row = ObjectRow(sequence: rendition.object.sequence, record: rendition.object.record)
        _ = await lookups.run { [finder] in finder.removeCorrupt(row) }
    }

    // MARK: Linking

    /// Records an alias to a stored object: another URL returned the same GIF.
    ///
    /// - Returns: `existing` if the alias now leads to the object, otherwise `unstored`; nil if there is no such object.
    package func link(_ alias: AliasRecord, to object: ObjectID, epoch: Epoch) async -> PublishOutcome? {
        if let linked = await publishers.run({ [publisher] in publisher.addAlias(alias, to: object, epoch: epoch) }) {
            return linked
        }
        return await documents.run { [publisher] in publisher.unfinishedAlias(alias, to: object, epoch: epoch) } ?? nil
    }

    /// Records that the origin has confirmed the bytes (304): the alias is fresh from the time of its response on.
    ///
    /// - Parameters:
    ///   - validators: From the origin's response; a missing one keeps its value (RFC 9111 section 4.3.4).
    ///   - epoch: The epoch noted before the origin was asked.
    /// - Returns: The renewed rendition; nil if the alias is gone or was purged meanwhile.
    package func renew(
        _ key: AliasKey, validators: Validators, times: OriginTimes, epoch: Epoch
    ) async -> CachedRendition? {
        await publishers.run { [publisher] in
            publisher.renewAlias(key, validators: validators, times: times, epoch: epoch)
        } ?? nil
    }

    // MARK: Publishing

    /// The current epoch. Read it before work on a source begins, and pass it to
    /// ``publish(_:as:fileExtension:facts:alias:created:epoch:storing:)``.
    package var epoch: Epoch { context.purges.epoch }

    /// Creates a file to write a rendition into: on the cache's file system, or in memory if the disk has no space.
    ///
    /// - Parameter expected: The size in bytes that the rendition may reach.
    /// - Throws: ``CacheError/stagingFailed(_:)`` if there is no memory either, ``CacheError/closed``.
    package func stage(expecting expected: Int64) async throws(CacheError) -> StagedFile {
        let staged = await publishers.run { [publisher] in
            Result { () throws(CacheError) in try publisher.createFile(expecting: expected) }
        }
        if let staged { return try staged.get() }
        guard !isClosed.load(ordering: .relaxed) else { throw .closed }
        return try stageInMemory(because: .unavailable)
    }

    /// Runs work with a document of facts on a thread of the cache.
    ///
    /// - Throws: ``CacheError/closed`` if no thread accepts the work, or the error of the work.
    package func onThread<Value: Sendable>(
        _ work: @escaping @Sendable () throws(CacheError) -> Value
    ) async throws(CacheError) -> Value {
        guard let result = await documents.run({ Result { () throws(CacheError) in try work() } }) else { throw .closed }
        return try result.get()
    }

    /// Creates a file in memory to write a rendition into, for when the disk filled up during the write. Its rendition is not
    /// stored.
    package func stageInMemory(because reason: UnstoredReason) throws(CacheError) -> StagedFile {
        try publisher.createFileInMemory(because: reason)
    }

    /// Creates a staged file with a copy of another file's bytes, copied on a thread of the cache.
    ///
    /// - Parameter file: Must not change.
    /// - Throws: ``CacheError/stagingFailed(_:)`` if neither disk nor memory has space, ``CacheError/closed`` if no thread
    ///   accepts the work.
    package func stage(copyOf file: SharedDescriptor, count: Int) async throws(CacheError) -> StagedFile {
        let staged = await publishers.run { [publisher] in
            Result { () throws(CacheError) in try publisher.createCopy(of: file, count: count) }
        }
        if let staged { return try staged.get() }
        return try await onThread { [publisher] () throws(CacheError) in
            try publisher.createCopyInMemory(of: file, count: count, because: .unavailable)
        }
    }

    /// Stores a finished rendition and the alias to it. Returns once the file is durable and both can be found. If that takes too
    /// long, it returns a copy in memory, and both can be found later.
    ///
    /// The rows of both are durable after the next round of housekeeping; see
    /// ``CacheConfiguration/housekeepingInterval``. A power loss before that loses the rendition.
    ///
    /// - Parameters:
    ///   - staged: Contains exactly the rendition's bytes; no process may write to it any more.
    ///   - object: Its id. If it is stored already, the stored one is used.
    ///   - fileExtension: One to eight of `a…z 0…9`.
    ///   - facts: Up to ``ObjectRecord/maxFactsCount`` bytes to store with it.
    ///   - alias: Its source; nil for an uploaded GIF. An uploaded rendition outlives purges of URLs with the same bytes.
    ///   - created: Seconds since 1970 at which another node published it; nil if it is new.
    ///   - epoch: The epoch noted before the source was fetched.
    ///   - storing: False if the origin forbids storing it (`Cache-Control: no-store`); then it is only measured.
    /// - Returns: The rendition, and whether it is stored. Disk errors are not thrown: the rendition is usable in any case.
    /// - Throws: ``CacheError/stagedFileUnusable(reason:)``.
    package func publish(
        _ staged: StagedFile, as object: ObjectID, fileExtension: String, facts: [UInt8], alias: AliasRecord?,
        created: Int64? = nil, epoch: Epoch, storing: Bool
    ) async throws(CacheError) -> PublishOutcome {
        guard ObjectRecord.isExtension(fileExtension) else { throw .stagedFileUnusable(reason: "its extension is not allowed") }
        guard facts.count <= ObjectRecord.maxFactsCount else { throw .stagedFileUnusable(reason: "its facts are too long") }
        guard staged.take() else { throw .stagedFileUnusable(reason: "it was published before") }
        let job = PublishJob(
            staged: staged, id: object, fileExtension: fileExtension, facts: facts, alias: alias, created: created,
            epoch: epoch, storing: storing)
        let work = { @Sendable [publisher] in Result { () throws(CacheError) in try publisher.process(job) } }
        let result = await publishers.run(work) { [context] late in
            if case .success(.stored(let rendition)) = late { context.lateObserver.withLock(\.self)?(rendition) }
        }
        if let result { return try result.get() }
        let unfinished: @Sendable () -> Result<PublishOutcome, CacheError> = { [publisher] in
            Result { () throws(CacheError) in try publisher.unfinished(job) }
        }
        return try (await documents.run(unfinished) ?? unfinished()).get()
    }

    /// Sets the function that receives each rendition that is stored after its publish has returned. It must not block.
    package func observeLateRenditions(_ observer: @escaping @Sendable (CachedRendition) -> Void) {
        context.lateObserver.withLock { $0 = observer }
    }

    // MARK: Purging

    /// The known purges. No question about them waits for a disk.
    package var purges: PurgeIndex { context.purges }

    /// The cluster's clock, by which purges of other nodes are compared with what is stored.
    package var sharedClock: SharedClock { context.sharedClock }

    /// The purges that exist only in memory, because they could not be written or wait for the disk. Never waits for a disk.
    package var unrecordedPurges: [Purge] { context.purges.announced + context.status.unrecordedPurges.withLock(\.self) }

    /// Registers a function to call for each purge that takes effect, before the purging call returns. It must not block.
    package func observePurges(_ observer: @escaping @Sendable (PurgeScope) -> Void) {
        context.purgeObservers.withLock { $0.append(observer) }
    }

    /// Creates a purge that this node accepts now.
    ///
    /// - Parameter isShared: Whether to send the purge to the other nodes of a cluster.
    package func newPurge(_ scope: PurgeScope, isShared: Bool = false) -> Purge {
        Purge(
            scope, madeAt: sharedClock.latest, isLocal: true, token: purgeToken(), entry: isShared ? nil : "")
    }

    /// Makes every purge of an object also delete it from the shared store. The purge's transaction records the deletion.
    ///
    /// - Parameter outbox: Opened with ``ledger``.
    package func sendDeletions(by outbox: Outbox) {
        context.changes.withLock { $0.outbox = outbox }
    }

    /// Forgets what `scope` covers, on this node.
    package func purge(_ scope: PurgeScope) async throws(CacheError) -> PurgeCounts {
        try await purge([newPurge(scope)])
    }

    /// Forgets what purges cover: aliases, and objects that no other alias leads to and that were not uploaded. Only purges of
    /// an object and of everything forget an uploaded object.
    ///
    /// Writes one row per purge, whatever it covers. The covered rows and files are removed later; no lookup finds them after
    /// this. A purge whose token is known has no effect.
    ///
    /// Once this returns or throws ``CacheError/purgeNotDurable(cause:)``, no lookup returns anything older that the purges
    /// cover, and covered work that began earlier is not stored when it is published. Once this returns, both also hold after a
    /// power loss. The counts include what an earlier purge covers and no sweep has removed yet. The purges take effect
    /// before the disk has answered.
    ///
    /// - Parameter change: A change to other owners' tables in the same transaction. If the transaction fails, the change is
    ///   retried with later ones.
    /// - Throws: ``CacheError/purgeNotDurable(cause:)`` if the purges may hold only until the next start, ``CacheError/closed``.
    package func purge(
        _ purges: [Purge], with change: @escaping Ledger.Change = { _ in }
    ) async throws(CacheError) -> PurgeCounts {
        for purge in purges { announce(purge) }
        let result = await purgers.run(isRequired: true) { [self] in apply(purges, with: change, isObserved: false) }
        if let result { return try result.get() }
        guard !isClosed.load(ordering: .relaxed) else { throw .closed }
        forgetHotObjects(of: purges)
        throw .purgeNotDurable(cause: "the disk does not answer")
    }

    /// Lets a purge take effect before ``writeAnnounced(_:with:completion:)``, which has to follow, makes it durable. Never waits
    /// for a disk.
    ///
    /// - Returns: False if the purge is known.
    @discardableResult
    package func announce(_ purge: Purge) -> Bool {
        guard context.purges.announce(purge) else { return false }
        context.hot.remove(purge.scope, removed: [])
        notifyObservers(of: purge.scope)
        return true
    }

    /// Writes announced purges as ``purge(_:with:)`` does, in the order of the calls, and returns at once.
    ///
    /// - Parameter completion: Receives the result when the disk has answered. It must not block.
    package func writeAnnounced(
        _ purges: [Purge], with change: @escaping Ledger.Change = { _ in },
        completion: @escaping @Sendable (Result<PurgeCounts, CacheError>) -> Void
    ) {
        let isAccepted = purgers.threads.submit { [self] in completion(apply(purges, with: change, isObserved: false)) }
        if !isAccepted { completion(.failure(.closed)) }
    }

    /// Removes from memory what purges may cover, because the disk does not answer: only the disk knows which objects in memory
    /// the purged aliases led to.
    package func forgetHotObjects(of purges: [Purge]) {
        for purge in purges { context.hot.remove(purge.scope, removed: nil) }
    }

    private func notifyObservers(of scope: PurgeScope) {
        for observer in context.purgeObservers.withLock({ $0 }) { observer(scope) }
    }

    /// Applies purges on the caller's thread; see ``purge(_:with:)``. Blocks.
    ///
    /// - Parameter isObserved: False if the observers know the purges, or if the origin removed the source: work in progress found
    ///   this out, so it must not be overtaken.
    func apply(
        _ new: [Purge], with change: @escaping Ledger.Change = { _ in }, isObserved: Bool = true
    ) -> Result<PurgeCounts, CacheError> {
        // The purge enters the index under the lock that publishes take: a publish is either earlier, and covered, or later,
        // and refused.
        let (result, outbox) = context.changes.withLock { ($0.purge(new, with: change), $0.outbox) }
        context.reached(.purgeInForce)
        var counts = PurgeCounts()
        for (purge, sequence) in result.purges {
            context.hot.remove(purge.scope, removed: context.query { try $0.objects(of: purge.scope) } ?? nil)
            context.reached(.purgeCooled)
            if let id = purge.scope.objectID { outbox?.sendDeletion(of: id) }
            if isObserved { notifyObservers(of: purge.scope) }
            counts.add(context.count(purge, sequence))
        }
        // The rest follows in the background. No lookup finds these rows.
        var sweeps = 0
        while sweeps < Self.sweepsAtOnce, context.changes.withLock({ $0.sweep() }) { sweeps += 1 }
        if sweeps == Self.sweepsAtOnce { context.housekeeping.wake() }
        context.counters.update { counters in
            counters.purges += Int64(result.purges.count)
            counters.purged += counts.purged
        }
        if let failure = result.failure { return .failure(.purgeNotDurable(cause: failure.description)) }
        return .success(counts)
    }

    private static let sweepsAtOnce = 8

    /// Forgets the renditions of a source that its origin has removed. Refused while too many publishes wait; the next request
    /// to the origin repeats it.
    package func forget(_ sourceURL: String) async throws(CacheError) {
        let purge = newPurge(.url(sourceURL))
        guard let result = await publishers.run({ [self] in apply([purge], isObserved: false) }) else { throw .busy }
        _ = try result.get()
    }

    /// Requires the origin of every alias to be asked again before the alias is used, because purges may have been missed. Work
    /// that began earlier is not stored when it is published. Drops renditions that a former process queued for the shared
    /// store. If `doubt` is certain, an object is found by its id only after an alias to it was renewed or it was uploaded again.
    ///
    /// The doubt holds when the call returns, which waits five seconds at most for a disk that stalls; the rest follows before
    /// later purges. It survives a restart, unless the directory cannot be written to before the restart.
    package func revalidateAll(_ doubt: MissedPurges = .certain) async {
        let includesUploads = doubt == .certain
        context.doubts.announce(doubt, includingUploads: includesUploads)
        await settle { [context] in context.revalidateAll(doubt, missesPurges: true, includesUploads: includesUploads) }
    }

    /// Expires every alias as ``revalidateAll(_:)`` does, but drops no queued renditions and doubts no uploads. Blocks for five
    /// seconds at most.
    package func expireAliases() {
        context.doubts.announce(.certain, includingUploads: false)
        let isDone = Semaphore()
        let isAccepted = purgers.threads.submit { [context] in
            context.revalidateAll(.certain, missesPurges: false, includesUploads: false)
            isDone.signal()
        }
        if isAccepted { _ = isDone.wait(for: DiskWork.patience) }
    }

    /// Runs work in the order of the purges, and waits for its end unless the disk stalls.
    private func settle(_ work: @escaping @Sendable () -> Void) async {
        let isDone = AsyncSignal()
        let isAccepted = purgers.threads.submit {
            work()
            isDone.signal()
        }
        if isAccepted { await isDone.wait(for: DiskWork.patience, context.clock) }
    }

    /// Doubts every alias until ``confirmAliases()``, including aliases stored from now on until ``doubtAliases()``: other
    /// nodes may have purged while this node was away, and current purges do not count it. If `doubt` is certain, purges may be
    /// complete without this node, so only ``rendition(for:countsMiss:)`` finds stored objects. Not recorded. May block.
    package func holdAliases(_ doubt: MissedPurges = .certain) {
        context.changes.withLock { context.doubts.hold(doubt, through: $0.sequence) }
    }

    /// Leaves every stored alias unconfirmed until ``confirmAliases()``, because this node would not learn of purges by others.
    /// Not recorded.
    package func doubtAliases() async {
        context.doubts.hold(.possible, through: 0)
        await settle { [context] in context.changes.withLock { context.doubts.doubtAlone(through: $0.sequence) } }
    }

    /// Ends ``holdAliases(_:)`` and ``doubtAliases()``: all purges of other nodes were applied. Never waits for a disk.
    package func confirmAliases() {
        context.doubts.confirm()
    }

    /// Changes other owners' tables durably, after all purges so far. If the transaction fails, or the disk stalls, the change
    /// follows later.
    package func record(_ change: @escaping Ledger.Change) async {
        _ = await purgers.run(isRequired: true) { [context] in
            context.changes.withLock { $0.recordOrRemember(.init(change: change)) }
        }
    }

    /// Changes other owners' tables for a rendition, unless its object itself was purged after `epoch`. No purge comes between
    /// the check and the change.
    ///
    /// - Returns: Whether the change was committed.
    package func record(of object: ObjectID, since epoch: Epoch, _ change: @escaping Ledger.Change) async -> Bool {
        await publishers.threads.run { [context] in
            context.changes.withLock { changes in
                changes.record(change) { !context.purges.containsPurge(of: object, since: epoch) }
            }
        } ?? false
    }

    // MARK: Statistics

    /// Returns the free space of the directory's file system; nil if it does not answer. May wait for a network file system.
    package func space() -> CacheSpace? {
        (try? context.directory.space()).map { CacheSpace(disk: $0, minFreeBytes: context.minFreeBytes) }
    }

    package func statistics() -> CacheStatistics {
        let totals = context.status.totals
        var statistics = context.counters.snapshot
        (statistics.objects, statistics.bytes) = (totals.objects, totals.bytes)
        (statistics.aliases, statistics.aliasBytes) = (totals.aliases, totals.aliasSpace)
        (statistics.diskBytes, statistics.limitBytes) = (totals.space, context.maxBytes)
        statistics.hotHits = context.hot.hits
        statistics.refusal = context.status.refusal ?? (publishers.isOverdue ? .unavailable : statistics.refusal)
        return statistics
    }
}
