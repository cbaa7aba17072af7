internal import Fetch
internal import Sandbox
internal import Store
internal import SystemIO

/// The result of a request's lookup before its miss.
struct EarlierLookup: Sendable {
    /// A stored rendition that the origin has to confirm.
    let stored: CachedRendition?
    /// Noted before the lookup.
    let version: CacheVersion
}

/// The steps of a miss, from a request without an answer to the stored rendition.
///
/// The work of one flight: look up again, check failures, admit, join the other nodes, fetch, reuse (from the local cache or
/// the shared tier), convert, publish, share.
struct MissRunner: Sendable {
    let originRules: OriginRules
    /// The largest source, in bytes.
    let maxSourceBytes: Int
    let state: RenditionState
    let cache: Cache
    let clock: TimeSource
    let loader: SourceLoader
    let producer: RenditionProducer
    let sharing: SharedRenditions?
    let log: ProductionLog
    /// Called for each source that the block list refuses or that flashes, with ``RenditionError/blocked(label:)`` or
    /// ``RenditionError/flashing(general:red:)``.
    let onObjection: @Sendable (RenditionError) -> Void

    /// Runs a miss. One call per flight.
    ///
    /// - Parameter lookup: The lookup of the request that started the flight; nil if there was none.
    func run(
        _ request: RenditionRequest, _ flight: Flight, after lookup: EarlierLookup? = nil
    ) async throws(RenditionError) -> RenditionResult {
        let stored = try await lookUpAgain(request, after: lookup)
        if let stored, case .fresh = cache.freshness(of: stored) { return RenditionResult(stored, .hit) }
        try state.failures.check(request.key, of: request.source)
        let slot = try state.admission.admit(
            request.source.origin, bytes: maxSourceBytes, cost: request.rendition.cost,
            urgency: flight.turn.urgency, client: request.client)
        defer { withExtendedLifetime(slot) {} }
        guard let sharing else { return try await runLocally(request, stored, slot, flight) }
        // A client that follows the source does not wait for the node that runs the miss.
        if request.followsSource, sharing.isCoordinated { loader.start(request.source, flight.turn, slot) }
        do throws(RenditionError) {
            let result = try await sharing.runOnOneNode(request) { () async throws(RenditionError) in
                try await runLocally(request, stored, slot, flight)
            }
            // Another node may have asked the origin.
            state.missing.remove(request.source)
            return result
        } catch .remembered(let error, let remaining) {
            // Another node found the source missing.
            if stored != nil { _ = await removeIfGone(request, after: error) }
            throw .remembered(error, remaining: remaining)
        } catch {
            throw error
        }
    }

    /// Looks up again if an earlier flight may have published, or a purge was made, between the lookup of the request and the
    /// start of this flight.
    ///
    /// - Throws: ``RenditionError/overloaded(cause:)`` if too many lookups wait. A fetch would cost more.
    private func lookUpAgain(
        _ request: RenditionRequest, after lookup: EarlierLookup?
    ) async throws(RenditionError) -> CachedRendition? {
        if let lookup, lookup.version == cache.version { return lookup.stored }
        return try await translating(
            awaiting: try await cache.rendition(for: request.key, countsMiss: false), to: RenditionError.init)
    }

    /// Runs the miss of an upload's rendition. One call per flight.
    func run(_ request: UploadRequest, _ flight: Flight) async throws(RenditionError) -> RenditionResult {
        let result = try await runLocally(request, flight)
        // The next request for its address may reach another node, which finds it only in the store. The wait occupies no slot.
        await sharing?.save(result).value
        return result
    }

    private func runLocally(_ request: UploadRequest, _ flight: Flight) async throws(RenditionError) -> RenditionResult {
        flight.progress.loaded(bytes: request.source.count)
        let slot = try state.admission.admit(
            nil, bytes: request.source.count, cost: request.rendition.cost, urgency: flight.turn.urgency, client: request.client
        )
        defer { withExtendedLifetime(slot) {} }
        let job = RenditionJob(request.rendition, of: request.source, epoch: cache.epoch)
        try await check(job, flight)
        return try await producer.produce(job, flight)
    }

    /// Fetches a still image, or asks whether it has changed, and stores it unchanged.
    ///
    /// - Parameter request: For the source itself.
    func runImage(_ request: RenditionRequest, _ flight: Flight) async throws(RenditionError) -> RenditionResult {
        let stored = try await lookUpAgain(request, after: nil)
        if let stored, case .fresh = cache.freshness(of: stored) { return RenditionResult(stored, .hit) }
        let slot = try state.admission.admit(
            request.source.origin, bytes: maxSourceBytes, urgency: flight.turn.urgency, client: request.client)
        defer { withExtendedLifetime(slot) {} }
        return try await runLocally(request, stored, slot, flight, isImage: true)
    }

    /// Runs the steps of a miss, starting with the fetch.
    private func runLocally(
        _ request: RenditionRequest, _ stored: CachedRendition?, _ slot: AdmissionSlot, _ flight: Flight, isImage: Bool = false
    ) async throws(RenditionError) -> RenditionResult {
        // Captures the source and not the request, whose watch holds the flight.
        flight.progress.fetches { [loader, source = request.source] in loader.arrived(source) }
        switch try await fetch(request, validatorsOf: stored, slot, flight.turn, isImage: isImage) {
        case .notModified(let unmodified, let epoch):
            return try await renew(request, stored, unmodified, epoch)
        case .loaded(let loaded):
            slot.sourceArrived(bytes: loaded.source.count)
            flight.progress.loaded(bytes: loaded.source.count)
            slot.account(for: loaded.arriving)
            // While any flight holds the loaded source, other renditions of it need no fetch.
            defer { withExtendedLifetime(loaded) {} }
            if !loaded.storage.isAllowed {
                if stored != nil { await forget(request.source) }
                flight.dependOnCallers()
                if Task.isCancelled { throw .cancelled }
            }
            // The site has replaced the image by an animation. Where only the decoder recognized the image, the first bytes do not
            // tell, so the contents are compared.
            if isImage, OriginalFile.image(loaded.source.bytes) == nil,
                let failure = state.failures.failure(of: request.key, of: request.source), failure.isOfImage,
                stored.map({ $0.content.bytes != loaded.source.digest.bytes }) ?? !failure.concernsRendition
            {
                state.failures.forget(.url(request.source.canonical))
            }
            try await refuse(loaded, request, stored, flight)
            if let companion = request.companion { await produce(companion, beside: request, of: loaded) }
            async let facts: Void = noteFacts(request, of: loaded)
            let result: RenditionResult
            do throws(RenditionError) {
                result = try await produceRememberingFailure(request, of: loaded, flight)
            } catch {
                // Once the loaded source is released, the facts would cost another fetch.
                await facts
                throw error
            }
            await facts
            if let alternative = request.alternative,
                RenditionFacts(stored: result.rendition.facts)?.staysSource(length: result.rendition.length) ?? false
            {
                // If the alternative cannot be stored now, the request for it tries again.
                _ = try? await producer.produce(RenditionJob(alternative, of: loaded), flight)
            }
            return result
        }
    }

    /// Checks a source, and shows it to its followers if it passes. If it fails, remembers the failure; a blocked source is
    /// forgotten.
    private func refuse(
        _ loaded: LoadedSource, _ request: RenditionRequest, _ stored: CachedRendition?, _ flight: Flight
    ) async throws(RenditionError) {
        do throws(RenditionError) {
            try await check(RenditionJob(request.rendition, of: loaded), flight)
            // The check of a still does not determine whether the source may be shown.
            if request.rendition.format.isMoving || !producer.flashes.withholds { loaded.arriving.show() }
        } catch {
            if case .blocked = error {
                loaded.arriving.cutOff()
                // Remember first: forgetting counts as a purge, and a failure from before a purge is not remembered.
                state.failures.remember(error, of: request.source, since: loaded.epoch)
                if stored != nil { await forget(request.source) }
            } else {
                state.failures.remember(error, of: request.key, of: request.source, since: loaded.epoch)
            }
            if case .flashing = error {
                if producer.flashes == .still { await produce(request.rendition.still, beside: request, of: loaded) }
                await noteFacts(request, of: loaded)
            }
            throw error
        }
    }

    /// Compares a source with the block list, and counts its flashes.
    ///
    /// - Parameter isTrial: Whether to store, log and count nothing.
    func check(_ job: RenditionJob, _ flight: Flight, isTrial: Bool = false) async throws(RenditionError) {
        do throws(RenditionError) {
            try await producer.check(job, flight, storing: !isTrial)
        } catch {
            if !isTrial {
                onObjection(error)
                log.objected(to: job.source, error)
            }
            if case .flashing = error, producer.flashes == .warn { return }
            throw error
        }
    }

    /// Produces the facts of a source whose rendition may be replaced by an alternative: the facts decide whether it is. While
    /// the caller holds the source, this needs no fetch.
    private func noteFacts(_ request: RenditionRequest, of loaded: LoadedSource) async {
        guard request.alternative != nil else { return }
        await produce(Rendition(format: .json), beside: request, of: loaded)
    }

    /// Produces another rendition of a loaded source. Ignores a failure: a later request for the rendition reports it.
    ///
    /// Does nothing for the rendition of the request: its flight would wait for itself.
    private func produce(_ other: Rendition, beside request: RenditionRequest, of loaded: LoadedSource) async {
        guard loaded.storage.isAllowed, other != request.rendition else { return }
        let other = request.with(other)
        _ = try? await state.flights.value(
            for: FlightKey(other), urgency: other.urgency, client: other.client, outlivesCallers: true
        ) { flight async throws(RenditionError) in try await run(other, flight) }
    }

    /// Fetches the source of a request.
    ///
    /// - Parameter isImage: Whether a still image is accepted. A failure is then remembered for the source itself: the failure
    ///   of its renditions is that it is a still.
    private func fetch(
        _ request: RenditionRequest, validatorsOf stored: CachedRendition?, _ slot: AdmissionSlot, _ turn: JobTurn,
        isImage: Bool
    ) async throws(RenditionError) -> SourceLoader.Outcome {
        let epoch = cache.epoch
        let validators = SourceValidators(stored?.alias?.validators)
        do throws(RenditionError) {
            var outcome: SourceLoader.Outcome
            if isImage {
                outcome = try await loader.loadApart(request.source, validators: validators, slot, acceptsImages: true)
            } else {
                outcome = try await loader.load(request.source, validators: validators, turn, slot)
            }
            // A source that other renditions keep in memory may be older than a purge of this one's object.
            if case .loaded(let loaded) = outcome,
                cache.purges.containsPurge(of: RenditionJob(request.rendition, of: loaded).id, since: loaded.epoch)
            {
                outcome = try await loader.loadApart(request.source, slot, acceptsImages: isImage)
            }
            state.missing.remove(request.source)
            return outcome
        } catch {
            if isImage { state.failures.remember(error, of: request.key, of: request.source, since: epoch) }
            if stored != nil { _ = await removeIfGone(request, after: error) }
            throw error
        }
    }

    /// Removes the stored renditions of a request's source if its origin answers 410 or with a still image, or has answered 404
    /// for longer than the grace. Returns whether they were removed and must not be sent any more, as after a purge.
    func removeIfGone(_ request: RenditionRequest, after error: RenditionError) async -> Bool {
        let source = request.source
        switch error {
        case .fetchFailed(.gone): break
        case .fetchFailed(.notFound) where !state.missing.note(source, grace: .seconds(originRules.goneGrace)): break
        // What is stored of the source itself is renewed instead.
        case _ where error.isOfImage && request.rendition.format != .original: break
        default: return false
        }
        await forget(source)
        state.missing.remove(source)
        return true
    }

    /// Renews the alias of a rendition that the origin has confirmed (304).
    private func renew(
        _ request: RenditionRequest, _ stored: CachedRendition?, _ unmodified: UnmodifiedSource, _ epoch: Epoch
    ) async throws(RenditionError) -> RenditionResult {
        // Without a stored rendition there are no validators, and the origin cannot answer 304.
        guard let stored, let alias = stored.alias else { throw .overloaded(cause: "304 without a stored rendition") }
        let times = StageTimes(fetch: unmodified.duration)
        let storage = originRules.permission(
            for: request.source, unmodified.cacheDirectives, renewing: alias)
        guard storage.isAllowed else {
            await forget(request.source)
            return RenditionResult(stored, .unstored(.unwanted), times: times)
        }
        let renewed = await cache.renew(
            alias.key, validators: Validators(unmodified.validators),
            times: OriginTimes(
                fetchedAt: clock.steadySeconds,
                freshFor: stored.isOfIncompleteSource ? storage.freshForIncomplete : storage.freshFor,
                clientFreshFor: storage.clientFreshFor, mustRevalidate: storage.mustRevalidate), epoch: epoch)
        if let renewed { return RenditionResult(renewed, .renewed, times: times) }
        // If the cache cannot record the renewal, the stored rendition is still valid for this response, unless a purge is the
        // reason.
        let isPurged = cache.purges.overtook(epoch, sourceURL: request.source.canonical)
        return RenditionResult(stored, isPurged ? .unstored(.purged) : .renewed, times: times)
    }

    private func produceRememberingFailure(
        _ request: RenditionRequest, of loaded: LoadedSource, _ flight: Flight
    ) async throws(RenditionError) -> RenditionResult {
        do throws(RenditionError) {
            return try await producer.produce(RenditionJob(request.rendition, of: loaded), flight)
        } catch {
            if error.isOfImage {
                state.failures.remember(error, of: request.source, since: loaded.epoch)
            } else {
                state.failures.remember(error, of: request.key, of: request.source, since: loaded.epoch)
            }
            throw error
        }
    }

    /// Removes the stored renditions of a source. If the removal is not durable, the next renewal repeats it.
    func forget(_ source: SourceURL) async {
        do throws(CacheError) {
            try await cache.forget(source.canonical)
        } catch {
            log.couldNotForget(source, error)
        }
    }
}
