internal import Digests
internal import HTTPClient
internal import Synchronization
package import SystemIO

/// The second tier of the cache, shared by all nodes: finished renditions in a bucket of an S3-compatible service.
///
/// Objects are immutable and named by content id. Nothing depends on the service: a lookup ends within its deadline, a circuit
/// breaker lets calls fail at once during an outage, and writes wait in the ledger.
///
/// Any thread. Asynchronous functions suspend and never block; requests run on a thread of the store.
package final class SharedStore: Sendable {
    private let configuration: SharedStoreConfiguration
    private let keys: KeySpace
    private let http: HTTPClient
    private let client: S3Client
    /// Whether the server keeps metadata, which the first upload of the process determines.
    private let keepsMetadata = Mutex<Bool?>(nil)
    private let meter = StoreMeter()
    private let calls: GuardedCalls
    /// The queued writes; nil for a store that is only read and pruned.
    package let outbox: Outbox?
    private let purges: PurgeIndex?

    /// Opens the outbox and starts to send its entries. Requests the keys of a role, but sends nothing else itself, so an
    /// unreachable service is no error. Blocks.
    ///
    /// Create the store after forking worker processes, so that they contain no libcurl state.
    ///
    /// - Parameters:
    ///   - ledger: The cache's ledger; nil for a store that is only read and pruned.
    ///   - time: The circuit breaker uses its monotonic clock.
    ///   - purges: The known purges. A rendition that began before a purge of its object is not returned, even if another
    ///     node's upload ended after the removal.
    ///   - holdsPuts: Whether renditions that a former process queued are sent only after ``Outbox/releasePuts()``.
    ///   - report: Called for each state change worth a log line, on any thread. Must not block.
    /// - Throws: ``StoreError`` if the outbox cannot be used or the machine lacks a resource.
    package init(
        _ configuration: SharedStoreConfiguration, ledger: Ledger? = nil, time: TimeSource = .system,
        holdsPuts: Bool = false, purges: PurgeIndex? = nil,
        report: @escaping @Sendable (StoreEvent) -> Void
    ) throws {
        self.configuration = configuration
        self.purges = purges
        keys = configuration.keys
        let settings = configuration.outbox
        let outbox = try ledger.map { [meter] ledger in
            try Outbox(ledger, settings, meter, holdsPuts: holdsPuts, report: report)
        }
        self.outbox = outbox
        do throws(HTTPError) {
            http = try HTTPClient(name: "store", limits: HTTPClient.Limits(running: configuration.connections))
        } catch {
            outbox?.close()
            throw StoreError(error)
        }
        client = S3Client(http, bucket: configuration.bucket)
        let (client, probeKey) = (client, keys.prefix + "gifreel-probe")
        calls = GuardedCalls(
            limits: BreakerLimits(
                failures: configuration.outagesBeforeSuspension, pause: configuration.suspension,
                maxPause: configuration.longestSuspension),
            backoff: Backoff(first: .milliseconds(25), longest: .seconds(1)), meter: meter,
            now: { time.now },
            // The object need not exist.
            probe: { limit throws(StoreError) in _ = try await client.head(probeKey, timeout: limit) }
        ) { event in
            if event == .resumed { outbox?.endPauses() }
            report(event)
        }
        outbox?.startSending(concurrency: settings.uploads) { entry, file throws(StoreError) in
            try await self.send(entry, file)
        }
        Self.reportKeys(configuration, report)
    }

    /// Obtains the keys before the first request, and reports their source once. Each request reports failures.
    private static func reportKeys(
        _ configuration: SharedStoreConfiguration, _ report: @escaping @Sendable (StoreEvent) -> Void
    ) {
        let bucket = configuration.bucket
        switch bucket.keys {
        case .none: report(.unsigned)
        case .fixed: break
        case .role(let role):
            Task {
                do throws(StoreError) {
                    let signature = try await role.signature(for: bucket.endpoint.region, within: .seconds(60))
                    if signature == nil { report(.unsigned) }
                    if let source = role.source { report(.signed(source: source)) }
                } catch {}
            }
        }
    }

    /// Ends all calls with ``StoreError/closed``. Queued writes wait for the next start. Blocks.
    package func close() {
        outbox?.endSending()
        http.stop()
        outbox?.close()
    }

    // MARK: Reading

    package var lookupTimeout: Duration { configuration.lookupTimeout }

    /// Looks up a rendition and writes it to the caller's file.
    ///
    /// Length and SHA-256 are verified before this returns. A rendition that a queued delete is about to remove, or that a
    /// known purge covers, is not found.
    ///
    /// - Parameters:
    ///   - file: Open for reading and writing; it is emptied first, and its content is undefined after an error or a miss.
    ///   - maxLength: The largest rendition to accept, in bytes.
    ///   - limit: The time until the deadline, including retries; nil for ``SharedStoreConfiguration/lookupTimeout``.
    /// - Returns: The rendition's record; nil if the store does not have the rendition.
    package func fetch(
        _ name: RenditionName, into file: SharedDescriptor, maxLength: Int, within limit: Duration? = nil
    ) async throws(StoreError) -> StoredRecord? {
        let deletion = outbox?.deletion(of: name.id)
        let record: StoredRecord?
        do throws(StoreError) {
            record = try await calls.perform(.get, within: limit ?? configuration.lookupTimeout) {
                timeLeft throws(StoreError) in
                try await self.get(name, into: file, maxLength: maxLength, by: .now + timeLeft)
            }
        } catch {
            guard deletion != nil, error != .cancelled, error != .closed else { throw error }
            // A deletion has not reached the store yet, so the failed lookup counts as a miss.
            record = nil
        }
        // A deletion may have been added, or sent, meanwhile.
        let deletions = [deletion, outbox?.deletion(of: name.id)].compactMap(\.self)
        guard let record, !deletions.contains(where: record.began(until:)), !isRemoved(name, record) else {
            meter.update { $0.misses += 1 }
            return nil
        }
        meter.update { statistics in
            statistics.hits += 1
            statistics.bytesReceived += record.length
        }
        return record
    }

    /// Whether the rendition was purged after it began, that is, another node's upload ended after the removal. Removes the
    /// rendition again, because that node may disappear before it sends its own deletion.
    private func isRemoved(_ name: RenditionName, _ record: StoredRecord) -> Bool {
        guard let time = purges?.latestRemoval(of: name.id), record.began(until: time) else { return false }
        Task { [outbox] in await outbox?.delete(name.id, until: time) }
        return true
    }

    // MARK: Writing

    /// Queues a rendition to be stored, and suspends until it has been sent, an attempt has failed, or `limit` has passed. Does
    /// not wait while the circuit breaker is not closed.
    ///
    /// - Parameters:
    ///   - file: The rendition's file, which must not change any more. It may be unlinked afterwards.
    ///   - mediaType: For other readers of the bucket.
    ///   - transaction: Runs the change that queues the rendition in a transaction of the ledger, unless the rendition was
    ///     purged. Returns whether it was committed.
    /// - Returns: Whether other nodes can read the rendition now. If not, it stays queued, unless queuing failed.
    package func store(
        _ name: RenditionName, _ file: SharedDescriptor, _ record: StoredRecord, mediaType: String, within limit: Duration,
        in transaction: (@escaping Ledger.Change) async -> Bool
    ) async -> Bool {
        let limit = calls.phase == .closed ? limit : .zero
        return await outbox?.put(name, file, record, mediaType: mediaType, within: limit, in: transaction) ?? false
    }

    private func send(_ entry: OutboxEntry, _ file: SharedDescriptor?) async throws(StoreError) {
        switch entry.change {
        case .put(let name, let record, let mediaType):
            guard let file else { return }
            let limit = configuration.timeout + .milliseconds(1000 * (record.length / configuration.uploadRate))
            try await calls.perform(.put, within: limit) { timeLeft throws(StoreError) in
                try await put(name, file, record, mediaType: mediaType, by: .now + timeLeft)
            }
            meter.update { $0.bytesSent += record.length }
        case .delete(let time):
            try await calls.perform(.delete, within: configuration.timeout) { timeLeft throws(StoreError) in
                try await delete(entry.id, until: time, by: .now + timeLeft)
            }
        }
    }

    // MARK: Objects and their records

    // The record is stored as the object's metadata. Some servers silently drop metadata, and long facts exceed its limit; in these
    // cases, a second object next to the first contains the record. Each function is one attempt, without retries.

    /// The largest object with a record, in bytes.
    private static let maxRecordLength = 64 << 10

    private typealias Instant = ContinuousClock.Instant

    /// Gets a rendition into a file, which is emptied first, and verifies length and digest; nil if the store does not have it.
    ///
    /// - Throws: ``StoreError``; the file's content is then undefined.
    private func get(
        _ name: RenditionName, into file: SharedDescriptor, maxLength: Int, by deadline: Instant
    ) async throws(StoreError) -> StoredRecord? {
        guard let object = try await client.get(keys.object(name), to: .file(file, limit: maxLength), timeout: deadline - .now)
        else { return nil }
        var record = try recordIn(object.metadata)
        if record == nil { record = try await getRecord(name, by: deadline) }
        // Without a record, the object is being written, or another program has put it there.
        guard let record else { return nil }
        guard object.length == record.length else {
            throw .damaged(cause: "it has \(object.length) bytes in place of \(record.length)")
        }
        guard object.digest == record.digest else { throw .damaged(cause: "its SHA-256 does not match") }
        return record
    }

    /// Stores a rendition. The file must not change.
    private func put(
        _ name: RenditionName, _ file: SharedDescriptor, _ record: StoredRecord, mediaType: String, by deadline: Instant
    ) async throws(StoreError) {
        let usesMetadata = record.fitsMetadata
        let support = keepsMetadata.withLock { $0 }
        // Stored before the object, so that an object without a record is never complete.
        if !usesMetadata || support == false { try await putRecord(name, record, by: deadline) }
        try await client.put(
            keys.object(name),
            S3Client.Upload(
                body: .file(file, length: record.length), digest: record.digest, mediaType: mediaType,
                metadata: usesMetadata ? record.fields : [:]),
            timeout: deadline - .now)
        guard usesMetadata, support == nil,
            let metadata = try await client.head(keys.object(name), timeout: deadline - .now)
        else { return }
        let isKept = StoredRecord(fields: metadata) == record
        keepsMetadata.withLock { $0 = isKept }
        if !isKept { try await putRecord(name, record, by: deadline) }
    }

    /// Deletes the renditions of an id and their records. Succeeds if the store does not have them.
    ///
    /// - Parameter time: Only what began until this time is deleted, in milliseconds of the cluster's clock.
    private func delete(_ id: ObjectID, until time: Int64, by deadline: Instant) async throws(StoreError) {
        let present = try await keys(of: id, by: deadline)
        let names = configuration.fileExtensions.compactMap { RenditionName(id: id, fileExtension: $0) }
        var doomed =
            present ?? Dictionary(uniqueKeysWithValues: names.map { ($0, [self.keys.object($0), self.keys.record($0)]) })
        for name in doomed.keys {
            let record = try await record(name, by: deadline)
            if record?.began(until: time) != true { doomed[name] = nil }
        }
        // A rendition's record is deleted after its object: a record without an object is not found.
        try await deleteObjects(doomed.values.flatMap(\.self), by: deadline)
    }

    /// The store's keys for an id, by rendition, the object before its record. Nil if the store does not permit listing.
    private func keys(of id: ObjectID, by deadline: Instant) async throws(StoreError) -> [RenditionName: [String]]? {
        do throws(StoreError) {
            // An id has fewer objects than a page.
            let page = try await client.list(prefix: keys.objects(id), token: nil, timeout: deadline - .now)
            var present: [RenditionName: [String]] = [:]
            for key in page.entries.map(\.key).sorted() {
                if let name = keys.name(key) { present[name, default: []].append(key) }
            }
            return present
        } catch {
            switch error {
            case .denied(code: "AccessDenied"), .rejected: return nil
            default: throw error
            }
        }
    }

    /// The record of a rendition; nil if the store has no rendition with a readable record.
    private func record(_ name: RenditionName, by deadline: Instant) async throws(StoreError) -> StoredRecord? {
        guard let metadata = try await client.head(keys.object(name), timeout: deadline - .now) else { return nil }
        if StoredRecord.isPresent(in: metadata) { return StoredRecord(fields: metadata) }
        return try await getRecord(name, by: deadline)
    }

    /// Deletes up to ``S3Client/maxDeletions`` objects in order, by one request if the server permits.
    private func deleteObjects(_ keys: [String], by deadline: Instant) async throws(StoreError) {
        if keys.count > 1, let failures = try await client.delete(keys, timeout: deadline - .now) {
            if let failure = failures.values.first { throw failure }
            return
        }
        for key in keys { try await client.delete(key, timeout: deadline - .now) }
    }

    private func recordIn(_ metadata: [String: String]) throws(StoreError) -> StoredRecord? {
        guard StoredRecord.isPresent(in: metadata) else { return nil }
        keepsMetadata.withLock { $0 = true }
        guard let record = StoredRecord(fields: metadata) else { throw .damaged(cause: "its record cannot be read") }
        return record
    }

    private func getRecord(_ name: RenditionName, by deadline: Instant) async throws(StoreError) -> StoredRecord? {
        let object = try await client.get(keys.record(name), to: .memory(limit: Self.maxRecordLength), timeout: deadline - .now)
        guard let object else { return nil }
        guard let record = StoredRecord(fields: FieldLines.decode(object.body)) else {
            throw .damaged(cause: "its record cannot be read")
        }
        return record
    }

    private func putRecord(_ name: RenditionName, _ record: StoredRecord, by deadline: Instant) async throws(StoreError) {
        let bytes = FieldLines.encode(record.fields)
        let upload = S3Client.Upload(body: .bytes(bytes), digest: SHA256.hash(bytes), mediaType: "text/plain")
        try await client.put(keys.record(name), upload, timeout: deadline - .now)
    }
    // MARK: State

    /// Finds out with a small request whether an outage is over, if none of the last requests could tell.
    package func probeIfDue() async {
        await calls.probeIfDue(within: configuration.lookupTimeout)
    }

    package var statistics: StoreStatistics {
        var statistics = meter.snapshot
        statistics.breaker = calls.phase
        return statistics
    }

    // MARK: Checking

    /// Stores, lists, reads and deletes a small object, to find out what the credentials permit.
    ///
    /// - Throws: The error of the first request that fails.
    package func check() async throws(StoreError) {
        let key = "\(keys.prefix)gifreel-check-\(Hex.encode(UInt64.random(in: .min ... .max)))"
        let (bytes, timeout) = (Array("gifreel\n".utf8), configuration.timeout)
        try await client.put(
            key, S3Client.Upload(body: .bytes(bytes), digest: SHA256.hash(bytes), mediaType: "text/plain"), timeout: timeout)
        var failure: StoreError?
        do throws(StoreError) {
            guard try await client.head(key, timeout: timeout) != nil,
                try await client.get(key, to: .memory(limit: 1024), timeout: timeout)?.body == bytes,
                try await client.list(prefix: key, token: nil, timeout: timeout).entries.count == 1
            else { throw .invalidResponse(cause: "it does not return what was stored") }
        } catch {
            failure = error
        }
        try await client.delete(key, timeout: timeout)
        if let failure { throw failure }
    }

    // MARK: Pruning

    /// Deletes renditions that were stored before a time, and leaves other objects in the bucket alone.
    ///
    /// - Parameters:
    ///   - time: Seconds since 1970, compared with the time at which the service stored the object.
    ///   - start: Only objects with keys after this one are listed; see ``PruneProgress/completeThrough``.
    ///   - rate: The largest number of deletions per second.
    ///   - concurrency: The largest number of requests for deletions at once. Each request deletes as many objects as `rate`
    ///     permits in a tenth of a second.
    ///   - isDryRun: Whether renditions are counted and not deleted.
    ///   - progress: Called after each page of the list and each request for deletions, on one task.
    /// - Returns: The totals.
    /// - Throws: ``StoreError`` for a request that failed after its retries; what was deleted stays deleted.
    package func prune(
        storedBefore time: Int64, after start: String? = nil, deletionsPerSecond rate: Double = 100, concurrency: Int = 16,
        isDryRun: Bool = false, progress: @Sendable (PruneProgress) -> Void = { _ in }
    ) async throws(StoreError) -> PruneProgress {
        var totals = PruneProgress()
        totals.completeThrough = start
        var pace = Pace(rate: rate)
        let batch = min(max(Int(min(rate, 1_000_000) / 10), 1), S3Client.maxDeletions)
        var token: String?
        repeat {
            let page = try await calls.perform(.list, within: configuration.timeout) { [token] timeLeft throws(StoreError) in
                try await self.client.list(
                    prefix: self.keys.prefix, token: token, after: token == nil ? start : nil, timeout: timeLeft)
            }
            token = page.nextToken
            totals.listed += page.entries.count
            progress(totals)
            let old = page.entries.filter { $0.modified < time && keys.name($0.key) != nil }
            if isDryRun {
                for entry in old { totals.count(entry) }
                progress(totals)
            } else {
                if let failure = await delete(old, batch, &pace, max(1, concurrency), &totals, progress) { throw failure }
            }
            if let last = page.entries.last {
                totals.completeThrough = last.key
                progress(totals)
            }
        } while token != nil
        return totals
    }

    /// Deletes objects by concurrent requests. Starts no further requests after one failed, and returns its error.
    private func delete(
        _ entries: [S3ListPage.Entry], _ batch: Int, _ pace: inout Pace, _ concurrency: Int, _ totals: inout PruneProgress,
        _ progress: @Sendable (PruneProgress) -> Void
    ) async -> StoreError? {
        await withTaskGroup(of: (deleted: [S3ListPage.Entry], failure: StoreError?).self) { group in
            var failure: StoreError?
            func count(_ end: (deleted: [S3ListPage.Entry], failure: StoreError?)) {
                for entry in end.deleted { totals.count(entry) }
                failure = failure ?? end.failure
                progress(totals)
            }
            for start in stride(from: 0, to: entries.count, by: batch) {
                if start / batch >= concurrency, let end = await group.next() { count(end) }
                if failure != nil { break }
                let next = Array(entries[start...].prefix(batch))
                guard await pace.wait(for: next.count) else {
                    failure = .cancelled
                    break
                }
                group.addTask { await self.delete(next) }
            }
            for await end in group { count(end) }
            return failure
        }
    }

    /// Deletes objects by one request, or one at a time if the server does not support DeleteObjects.
    private func delete(_ entries: [S3ListPage.Entry]) async -> (deleted: [S3ListPage.Entry], failure: StoreError?) {
        var deleted: [S3ListPage.Entry] = []
        do throws(StoreError) {
            if entries.count > 1 {
                let failures = try await calls.perform(.delete, within: configuration.timeout) { timeLeft throws(StoreError) in
                    try await client.delete(entries.map(\.key), timeout: timeLeft)
                }
                if let failures { return (entries.filter { failures[$0.key] == nil }, failures.values.first) }
            }
            for entry in entries {
                try await calls.perform(.delete, within: configuration.timeout) { timeLeft throws(StoreError) in
                    try await client.delete(entry.key, timeout: timeLeft)
                }
                deleted.append(entry)
            }
            return (deleted, nil)
        } catch {
            return (deleted, error)
        }
    }
}

/// The progress of pruning.
package struct PruneProgress: Sendable, Equatable {
    package fileprivate(set) var listed = 0
    /// Objects deleted, or counted by a dry run.
    package fileprivate(set) var deleted = 0
    package fileprivate(set) var bytes = 0
    /// All objects up to this key have been processed; nil at the start.
    package fileprivate(set) var completeThrough: String?

    fileprivate mutating func count(_ entry: S3ListPage.Entry) {
        deleted += 1
        let (sum, isOver) = bytes.addingReportingOverflow(entry.length)
        bytes = isOver ? .max : sum
    }
}

/// Spaces events evenly.
private struct Pace {
    private let interval: Duration
    private var next = ContinuousClock.now

    init(rate: Double) {
        interval = .seconds(1 / min(max(rate, 0.001), 1_000_000))
    }

    /// Waits until the next event is due, and reserves the time of `count` events. Returns false if the task was cancelled.
    mutating func wait(for count: Int) async -> Bool {
        let isOnTime = (try? await Task.sleep(until: next)) != nil
        next = max(next, .now) + interval * count
        return isOnTime
    }
}
