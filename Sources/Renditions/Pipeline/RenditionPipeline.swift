package import Cache
internal import Fetch
package import Logging
internal import Media
internal import Sandbox

/// The core: from a request for a rendition to its finished file.
///
/// A hit is answered from the cache. A miss is the work of one flight, which all concurrent requests for the rendition share:
/// look up again, check failures, admit, join the other nodes, fetch, reuse (from the local cache or the shared tier), convert,
/// publish, share.
///
/// A value of policy: it is created anew at each reload and works on the ``RenditionState`` of the process. Any thread; calls
/// suspend and never block.
package struct RenditionPipeline: Sendable {
    package typealias Convert = @Sendable (Source, Rendition, Flight) async throws(RenditionError) -> Converter.Conversion

    /// The settings of the pipeline.
    package struct Policy: Sendable {
        package var originRules: OriginRules
        /// The largest source, in bytes.
        package var maxSourceBytes: Int
        /// Identifies the limits that decide whether a source fails; see ``SharedFailure/details(scope:)``.
        package var failureScope: String
        /// What requests mean that leave options out.
        package var defaults: RenditionDefaults

        package init(
            originRules: OriginRules, maxSourceBytes: Int, failureScope: String = "",
            defaults: RenditionDefaults = RenditionDefaults()
        ) {
            self.originRules = originRules
            self.maxSourceBytes = maxSourceBytes
            self.failureScope = failureScope
            self.defaults = defaults
        }
    }

    private let policy: Policy
    private let state: RenditionState
    private let cache: any RenditionCache
    private let clock: CacheClock
    private let loader: SourceLoader
    private let producer: RenditionProducer
    private let sharing: SharedRenditions?
    private let log: ProductionLog

    /// - Parameters:
    ///   - fetch: Fetches a source; called once per flight of a source.
    ///   - convert: Converts a source into a file of `cache`; called once per flight of a rendition.
    ///   - tier: A store that several nodes share; nil for a node without one.
    ///   - coordinator: The other nodes; nil for a node that works alone. Without a tier, only purges are coordinated.
    package init(
        _ policy: Policy, state: RenditionState, cache: any RenditionCache, clock: CacheClock = .system,
        fetch: @escaping SourceLoader.Fetch, convert: @escaping Convert, tier: (any SharedTier)? = nil,
        coordinator: (any NodeCoordinator)? = nil, logger: Logger
    ) {
        self.policy = policy
        self.state = state
        self.cache = cache
        self.clock = clock
        sharing = tier.map { tier in
            SharedRenditions(
                cache: cache, tier: tier, coordinator: coordinator, failures: state.failures,
                failureScope: policy.failureScope, clock: clock)
        }
        log = ProductionLog(logger)
        producer = RenditionProducer(cache: cache, sharing: sharing, convert: convert, log: log)
        loader = SourceLoader(
            cache: cache, clock: clock, rules: policy.originRules, state: state.sources, failures: state.failures,
            fetch: fetch)
    }

    /// What requests mean that leave options out.
    package var defaults: RenditionDefaults { policy.defaults }

    // MARK: Requests

    /// Returns the rendition of a source at a URL: a stored one, or one that is produced now.
    ///
    /// - Throws: ``RenditionError``; `cancelled` if the calling task is cancelled.
    package func find(_ request: RenditionRequest) async throws(RenditionError) -> RenditionResult {
        if let stored = await lookUp(request) { return stored }
        if let lastFrame = await redirectPastEnd(request) { return try await find(lastFrame) }
        try state.failures.check(request.key, of: request.source)
        try request.allowance.use()
        let (result, joined) = try await state.flights.value(
            for: FlightKey(request), urgency: request.urgency, watch: request.watch
        ) {
            flight async throws(RenditionError) in try await runMiss(request, flight)
        }
        return RenditionResult(result, joined: joined)
    }

    /// Returns the rendition of a source if it is stored, else the source itself while it arrives from the origin.
    ///
    /// The rendition is produced behind the response, from the same fetch. All callers of all renditions of the source share that
    /// fetch. If the rendition is known to fail, its ``RenditionRequest/alternative`` is requested in its place.
    ///
    /// - Throws: ``RenditionError``, as ``find(_:)-(RenditionRequest)`` does, if there is nothing to follow.
    package func findOrFollow(_ request: RenditionRequest) async throws(RenditionError) -> FollowedResult {
        if let stored = await lookUp(request) { return .rendition(stored) }
        if let failure = state.failures.failure(of: request.key, of: request.source) {
            guard let alternative = request.alternative else { throw failure }
            let answer = try await findOrFollow(request.with(alternative))
            guard case .rendition(var result) = answer else { return answer }
            // Another attempt may succeed once the failure is forgotten.
            result.isStorable = false
            return .rendition(result)
        }
        try request.allowance.use()
        var request = request
        request.followsSource = true
        return try await race(request, loader.follow(request.source)).get()
    }

    /// Returns the source itself in place of a rendition that cannot be produced. No cache may store that answer, because another
    /// attempt may succeed.
    ///
    /// - Returns: Nil if the error concerns the request or the source, or the source cannot be answered either.
    /// - Throws: ``RenditionError`` for a reason that lies in the client or this server, such as a used-up allowance. Another request
    ///   may be answered with the source.
    package func original(
        insteadOf error: RenditionError, for request: RenditionRequest
    ) async throws(RenditionError) -> RenditionResult? {
        guard error.concernsRendition else { return nil }
        var original = request.with(Rendition(format: .gif))
        // Any other attempt has used the client's allowance already.
        if case .remembered = error {} else { original.allowance = .unlimited }
        do throws(RenditionError) {
            var result = try await find(original)
            result.isStorable = false
            return result
        } catch {
            if case .whenServerHasCapacity = error.retry { throw error }
            return nil
        }
    }

    /// Returns a rendition if it is stored and may be answered. Produces and renews nothing.
    package func stored(_ request: RenditionRequest) async -> CachedRendition? {
        let stored = await usable(await cache.alias(request.key, isFirstLook: false), request.rendition)
        if let stored, case .expired = cache.freshness(of: stored) { return nil }
        return stored
    }

    /// Whether a request for an upload's rendition would be answered at once.
    package func isStored(_ request: UploadRequest) async -> Bool {
        await usable(await cache.uploadedObject(request.id), request.rendition) != nil
    }

    /// Whether an attempt to produce a rendition failed so recently that no other is made.
    package func isKnownToFail(_ request: RenditionRequest) -> Bool {
        state.failures.failure(of: request.key, of: request.source) != nil
    }

    /// Produces a rendition that no caller waits for, unless it is known to fail or the client has used up its allowance.
    package func produceBehindResponse(_ request: RenditionRequest) {
        guard !isKnownToFail(request), request.allowance.useIfAvailable() else { return }
        state.flights.start(FlightKey(request), urgency: request.urgency) { flight async throws(RenditionError) in
            try await runMissBehindResponse(request, flight)
        }
    }

    /// Runs the flight of a miss, and returns what comes first: its result, or the first bytes of the source.
    private func race(
        _ request: RenditionRequest, _ arriving: ArrivingSource
    ) async -> Result<FollowedResult, RenditionError> {
        let race = SourceRace(arriving: arriving, source: request.source, rules: policy.originRules)
        return await race.run { () async throws(RenditionError) in
            let (result, joined) = try await state.flights.value(
                for: FlightKey(request), urgency: request.urgency, outlivesCallers: true
            ) { flight async throws(RenditionError) in
                try await runMissBehindResponse(request, flight)
            }
            return RenditionResult(result, joined: joined)
        }
    }

    /// Runs a miss whose callers may have left with the source, so that an error has to be logged here.
    private func runMissBehindResponse(
        _ request: RenditionRequest, _ flight: Flight
    ) async throws(RenditionError) -> RenditionResult {
        do throws(RenditionError) {
            return try await runMiss(request, flight)
        } catch {
            if error != .cancelled { log.failed(request, error) }
            throw error
        }
    }

    /// Returns the rendition of an uploaded source, as above.
    package func find(_ request: UploadRequest) async throws(RenditionError) -> RenditionResult {
        if let stored = await usable(await cache.uploadedObject(request.id), request.rendition) {
            return RenditionResult(stored, .hit)
        }
        try request.allowance.use()
        let (result, joined) = try await state.uploadFlights.value(
            for: request.id, urgency: request.urgency, watch: request.watch
        ) { flight async throws(RenditionError) in
            flight.progress.loaded(bytes: request.source.count)
            let slot = try state.admission.admit(
                nil, bytes: request.source.count, cost: request.rendition.cost, urgency: flight.turn.urgency)
            defer { withExtendedLifetime(slot) {} }
            let production = Production(request.rendition, of: request.source, epoch: cache.epoch(for: nil))
            let result = try await producer.produce(production, flight)
            sharing?.save(result)
            return result
        }
        return RenditionResult(result, joined: joined)
    }

    /// Returns a stored object, from the local cache or the shared tier; nil if neither has it.
    ///
    /// - Parameter allowance: Used before the shared tier is asked, because ids without an object cost a request each.
    /// - Throws: ``RenditionError/rateLimited(retryAfter:)`` if the client has used up its allowance,
    ///   ``RenditionError/overloaded(cause:)`` if the shared tier cannot tell.
    package func object(
        _ id: ObjectID, fileExtension: String, allowance: MissAllowance
    ) async throws(RenditionError) -> CachedRendition? {
        if let stored = await cache.object(id, isFirstLook: true) { return stored }
        guard let sharing else { return nil }
        try allowance.use()
        return try await sharing.load(id, fileExtension: fileExtension)
    }

    /// Whether another miss would be admitted now.
    package var hasCapacity: Bool { state.admission.hasCapacity }

    /// Whether a miss would be admitted now, or join a flight.
    package func hasCapacity(for request: RenditionRequest) -> Bool {
        hasCapacity || state.flights.isJoinable(FlightKey(request))
    }

    // MARK: Look-up

    /// Returns what the cache can answer. Starts the renewal of a stale rendition in the background.
    private func lookUp(_ request: RenditionRequest) async -> RenditionResult? {
        guard let stored = await usable(await cache.alias(request.key), request.rendition) else { return nil }
        switch cache.freshness(of: stored) {
        case .fresh:
            return RenditionResult(stored, .hit)
        case .stale(let age):
            let failure = state.failures.failure(of: request.key, of: request.source)
            // Another request, or another node, has found that the origin removed the source.
            if case .remembered(let cause, _) = failure, cause.isSourceMissing {
                await forget(request.source)
                return nil
            }
            // An origin that is known to fail is not asked again.
            if failure == nil { renewBehindResponse(request) }
            return RenditionResult(stored, .stale(age))
        case .expired:
            return nil
        }
    }

    /// Starts the renewal of a stale rendition, which counts as a miss of the client. Without an allowance, it is left to a later
    /// request.
    private func renewBehindResponse(_ request: RenditionRequest) {
        let key = FlightKey(request)
        guard !state.flights.isJoinable(key), request.allowance.useIfAvailable() else { return }
        state.flights.start(key, urgency: .renewal) { flight async throws(RenditionError) in
            try await runMiss(request, flight)
        }
    }

    /// The request for the poster of the last frame, if the cache tells that the requested frame is past the end. All such
    /// requests share one alias.
    private func redirectPastEnd(_ request: RenditionRequest) async -> RenditionRequest? {
        guard let last = request.rendition.pastEnd, last != request.rendition,
            let frame = request.rendition.options.frame.number
        else { return nil }
        let redirected = request.with(last)
        guard let stored = await cache.alias(redirected.key, isFirstLook: false),
            let facts = RenditionFacts(stored: stored.facts), facts.frames <= frame
        else { return nil }
        if case .expired = cache.freshness(of: stored) { return nil }
        return redirected
    }

    /// Returns the stored rendition, unless it is a damaged facts document. The cache then drops it, so that it is produced
    /// again.
    private func usable(_ stored: CachedRendition?, _ rendition: Rendition) async -> CachedRendition? {
        guard let stored, rendition.format == .json, FactsFile.read(stored) == nil else { return stored }
        await cache.discardCorrupt(stored)
        return nil
    }

    // MARK: Miss

    /// Runs the steps of a miss. One call per flight.
    private func runMiss(_ request: RenditionRequest, _ flight: Flight) async throws(RenditionError) -> RenditionResult {
        // An earlier flight may have published between the look-up of the request and the start of this flight.
        let stored = await cache.alias(request.key, isFirstLook: false)
        if let stored, case .fresh = cache.freshness(of: stored) { return RenditionResult(stored, .hit) }
        try state.failures.check(request.key, of: request.source)
        let slot = try state.admission.admit(
            Admission.Origin(request.source), bytes: policy.maxSourceBytes, cost: request.rendition.cost,
            urgency: flight.turn.urgency)
        defer { withExtendedLifetime(slot) {} }
        guard let sharing else { return try await runLocally(request, stored, slot, flight) }
        // A client that follows the source does not wait for the node that runs the miss.
        let started = request.followsSource && sharing.isCoordinated ? loader.start(request.source, slot) : nil
        defer { withExtendedLifetime(started) {} }
        do throws(RenditionError) {
            return try await sharing.runOnOneNode(request) { () async throws(RenditionError) in
                try await runLocally(request, stored, slot, flight)
            }
        } catch .remembered(let error, let remaining) {
            // Another node found the source missing.
            if stored != nil, error.isSourceMissing { await forget(request.source) }
            throw .remembered(error, remaining: remaining)
        } catch {
            throw error
        }
    }

    /// Runs the steps of a miss from the fetch on.
    private func runLocally(
        _ request: RenditionRequest, _ stored: CachedRendition?, _ slot: AdmissionSlot, _ flight: Flight
    ) async throws(RenditionError) -> RenditionResult {
        flight.progress.fetches { loader.arrived(request.source) }
        switch try await fetch(request, validatorsOf: stored) {
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
            let result = try await produceRememberingFailure(request, of: loaded, flight)
            if let alternative = request.alternative, Int(result.rendition.length) > loaded.source.count {
                // If it cannot be stored now, the request for it tries again.
                _ = try? await producer.produce(Production(alternative, of: loaded), flight)
            }
            return result
        }
    }

    private func fetch(
        _ request: RenditionRequest, validatorsOf stored: CachedRendition?
    ) async throws(RenditionError) -> SourceLoader.Outcome {
        do throws(RenditionError) {
            return try await loader.load(request.source, validators: SourceValidators(stored?.alias?.validators))
        } catch {
            // The origin has removed the source, so stored renditions must not be sent any more, as after a purge.
            if stored != nil, error.isSourceMissing { await forget(request.source) }
            throw error
        }
    }

    /// Renews the alias of a rendition that the origin has confirmed (304).
    private func renew(
        _ request: RenditionRequest, _ stored: CachedRendition?, _ unmodified: UnmodifiedSource, _ epoch: Epoch
    ) async throws(RenditionError) -> RenditionResult {
        // Without a stored rendition there are no validators, and the origin cannot answer 304.
        guard let stored, let alias = stored.alias else { throw .overloaded(cause: "304 without a stored rendition") }
        let times = StageTimes(fetch: unmodified.duration)
        let storage = policy.originRules.permission(
            for: request.source, unmodified.cacheDirectives, renewing: alias.freshFor)
        guard storage.isAllowed else {
            await forget(request.source)
            return RenditionResult(stored, .unstored(.unwanted), times: times)
        }
        let renewed = await cache.renew(
            alias.key, validators: Validators(unmodified.validators), fetchedAt: clock.unixSeconds(),
            freshFor: storage.freshFor, epoch: epoch)
        if let renewed { return RenditionResult(renewed, .renewed, times: times) }
        // If the cache cannot record the renewal, the stored rendition is still valid for this response, unless a purge is the
        // reason.
        let isPurged = cache.isPurged(request.source.canonical, since: epoch)
        return RenditionResult(stored, isPurged ? .unstored(.purged) : .renewed, times: times)
    }

    private func produceRememberingFailure(
        _ request: RenditionRequest, of loaded: LoadedSource, _ flight: Flight
    ) async throws(RenditionError) -> RenditionResult {
        // Noted before the conversion, so that a purge during it also covers its failure.
        let failureEpoch = state.failures.epoch
        do throws(RenditionError) {
            return try await producer.produce(Production(request.rendition, of: loaded), flight)
        } catch {
            if !cache.isPurged(request.source.canonical, since: loaded.epoch) {
                state.failures.remember(error, of: request.key, of: request.source, since: failureEpoch)
            }
            throw error
        }
    }

    /// Removes the stored renditions of a source. If the removal is not durable, the next renewal repeats it.
    private func forget(_ source: SourceURL) async {
        do throws(CacheError) {
            _ = try await cache.purge(.url(source.canonical))
        } catch {
            log.couldNotForget(source, error)
        }
    }
}
