internal import Fetch
internal import Fleet
internal import Store
internal import SystemIO
internal import Tracing

/// The steps of a miss that involve other nodes: run on one node, load from the shared tier, share.
struct SharedRenditions: Sendable {
    let cache: Cache
    let tier: any SharedTier
    let coordinator: (any NodeCoordinator)?
    let admission: Admission
    let failures: FailureMemory
    let failureScope: String
    let clock: TimeSource

    /// The number of records of other nodes that are tried before this node runs the miss for itself.
    private static let maxRecords = 3

    /// Whether a miss may be run by another node.
    var isCoordinated: Bool { coordinator != nil }

    // MARK: Running a miss

    /// Runs a miss on one node: adopts what another node has found, or runs `work` here and shares its result.
    func runOnOneNode(
        _ request: RenditionRequest, _ work: () async throws(RenditionError) -> RenditionResult
    ) async throws(RenditionError) -> RenditionResult {
        // Noted before the record is received: a later purge covers it.
        let epoch = cache.epoch
        var rejected: SharedRecord?
        attempts: for _ in 0..<Self.maxRecords {
            guard let coordinator else { break }
            let role = await inSpan("join") { [rejected] _ in
                await coordinator.join(
                    request.key, of: request.source, rejecting: rejected, failureScope: failureScope)
            }
            switch role {
            case .alone: break attempts
            case .found(let record, let isFollowed):
                if let result = await adopt(record, request, epoch, isFollowed: isFollowed) { return result }
                rejected = record
            case .failed(let failure):
                if await isOutdated(failure, request) { break attempts }
                failures.remember(
                    failure, of: failure.isOfSource ? nil : request.key, ofSourceAt: request.source.canonical,
                    since: epoch)
                throw .remembered(failure.error, remaining: failure.remaining(at: clock.unixSeconds))
            case .lead(let lease):
                do throws(RenditionError) {
                    let result = try await work()
                    save(result, completing: lease)
                    return result
                } catch {
                    end(lease, error)
                    throw error
                }
            }
        }
        let result = try await work()
        save(result)
        return result
    }

    /// Whether another node has found a still image where this node has found another file since then.
    private func isOutdated(_ failure: SharedFailure, _ request: RenditionRequest) async -> Bool {
        let original = request.with(Rendition(format: .original))
        guard failure.error.isOfImage, let stored = try? await cache.rendition(for: original.key, countsMiss: false),
            let fetchedAt = stored.alias?.times.fetchedAt
        else { return false }
        return fetchedAt + clock.unixSeconds - clock.steadySeconds > failure.foundAt
            && OriginalFile.image(stored.descriptor) == nil
    }

    /// Ends a lease after the work has failed, while the error is returned to the callers.
    private func end(_ lease: FlightLease, _ error: RenditionError) {
        let failure = SharedFailure(error, foundAt: clock.unixSeconds)
        Task {
            if let failure { await lease.fail(failure) } else { await lease.release() }
        }
    }

    /// Publishes in the local cache the rendition that another node has found; nil if it cannot be used.
    private func adopt(
        _ record: SharedRecord, _ request: RenditionRequest, _ epoch: Epoch, isFollowed: Bool
    ) async -> RenditionResult? {
        guard case .object(let name) = record.outcome, let alias = record.alias(of: request, clock) else { return nil }
        // The origin was asked by the other node.
        let epoch = epoch.began(at: record.began)
        var outcome = await cache.link(alias, to: name.id, epoch: epoch)
        if outcome == nil,
            case .published(let received) = await receive(
                name.id, name.fileExtension, epoch, isOnlySource: false, alias: { _ in alias })
        {
            outcome = received
        }
        guard let outcome, case .fresh = cache.freshness(of: outcome.rendition) else { return nil }
        return RenditionResult(outcome, from: isFollowed ? .followed : .shared)
    }

    // MARK: The shared tier

    /// Publishes in the local cache a rendition from the shared tier; nil if the tier does not have it.
    func load(_ job: RenditionJob) async -> RenditionResult? {
        guard job.storage.isAllowed else { return nil }
        guard
            case .published(let outcome) = await receive(
                job.id, job.rendition.format.rawValue, job.epoch, isOnlySource: false,
                alias: job.alias)
        else { return nil }
        return job.result(outcome, as: .shared)
    }

    /// Publishes in the local cache an object from the shared tier; nil if the tier does not have it.
    ///
    /// - Throws: ``RenditionError/storageFailed(cause:)`` if the tier is unavailable, or the cache accepts no file.
    func load(_ id: ObjectID, fileExtension: String) async throws(RenditionError) -> CachedRendition? {
        switch await receive(id, fileExtension, cache.epoch, isOnlySource: true, alias: { _ in nil }) {
        case .published(let outcome): return outcome.rendition
        case .absent: return nil
        case .unavailable(let cause): throw .storageFailed(cause: cause)
        }
    }

    private enum Receipt {
        case published(PublishOutcome)
        case absent
        case unavailable(cause: String)
    }

    private func receive(
        _ id: ObjectID, _ fileExtension: String, _ epoch: Epoch, isOnlySource: Bool,
        alias: (_ facts: [UInt8]) -> AliasRecord?
    ) async -> Receipt {
        do throws(CacheError) {
            let file = try await cache.stage(expecting: 0)
            let answer = await inSpan("store lookup", ofKind: .client) { _ in
                await tier.load(id, fileExtension: fileExtension, into: file, isOnlySource: isOnlySource)
            }
            switch answer {
            case .found(let record):
                let alias = alias(record.facts)
                // Without an alias, the object is as old as its upload. With an alias, its origin was asked now.
                let outcome = try await cache.publish(
                    file, as: id, fileExtension: fileExtension, facts: record.facts, alias: alias,
                    created: record.created, epoch: alias == nil ? epoch.began(at: record.began) : epoch, storing: true)
                do throws(RenditionError) {
                    try admission.account(for: outcome.rendition)
                } catch {
                    return .unavailable(cause: "The disk is full, and so is the memory for renditions.")
                }
                return .published(outcome)
            case .absent: return .absent
            case .unavailable: return .unavailable(cause: "The shared store does not answer.")
            }
        } catch {
            // The cache accepts no file at the moment, so the rendition is produced in memory.
            return .unavailable(cause: error.description)
        }
    }

    /// Starts to save a result in the shared tier, unless its object is purged meanwhile.
    ///
    /// - Parameter lease: Completed once other nodes can read the rendition.
    /// - Returns: A task that ends within a deadline of the tier.
    @discardableResult
    func save(_ result: RenditionResult, completing lease: FlightLease? = nil) -> Task<Void, Never> {
        Task {
            let isReadable =
                switch result.provenance {
                case .stored: await inSpan("store", ofKind: .client) { _ in await tier.save(result.rendition) }
                // The tier has the object already.
                case .renewed, .shared: true
                default: false
                }
            if isReadable { await lease?.complete(result.rendition) } else { await lease?.release() }
        }
    }
}
