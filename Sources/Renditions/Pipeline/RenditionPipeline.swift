package import Fetch
package import Logging
internal import Media
internal import Sandbox
package import Store
package import SystemIO

/// The core: from a request for a rendition to its finished file.
///
/// A hit is answered from the cache. A miss is the work of one flight, which all concurrent requests for the rendition share;
/// see ``MissRunner``.
///
/// ```
/// let result = try await pipeline.find(request)  // a hit, or the end of the flight
/// send(result.rendition.descriptor, count: result.rendition.length)
/// ```
///
/// A value of policy: it is created anew at each reload and works on the ``RenditionState`` of the process. Any thread; calls
/// suspend and never block.
package struct RenditionPipeline: Sendable {
    package typealias Convert = @Sendable (SourceFile, Rendition, Flight) async throws(RenditionError) -> Converter.Conversion

    /// The settings of the pipeline.
    package struct Policy: Sendable {
        package var originRules: OriginRules
        /// The largest source, in bytes.
        package var maxSourceBytes: Int
        /// Identifies the limits that decide whether a source fails; see ``SharedFailure/details(scope:)``.
        package var failureScope: String
        /// The options of requests that leave them out.
        package var defaults: RenditionDefaults
        /// Finds the sources that operators name; nil for `http` and `https` URLs alone.
        package var sources: SourceRules?
        /// The time after a start in which requests for objects wait for the purges that this node missed.
        package var objectCatchUpLimit: Duration
        /// The sources that are refused; nil for none.
        package var blocks: BlockList?
        /// The treatment of animations that flash.
        package var flashes = FlashLimit.off

        package init(
            originRules: OriginRules, maxSourceBytes: Int, failureScope: String = "",
            defaults: RenditionDefaults = RenditionDefaults(), objectCatchUpLimit: Duration = .zero
        ) {
            self.originRules = originRules
            self.maxSourceBytes = maxSourceBytes
            self.failureScope = failureScope
            self.defaults = defaults
            self.objectCatchUpLimit = objectCatchUpLimit
        }
    }

    private let policy: Policy
    let state: RenditionState
    let cache: Cache
    private let loader: SourceLoader
    private let sharing: SharedRenditions?
    let misses: MissRunner
    private let log: ProductionLog

    /// - Parameters:
    ///   - fetch: Fetches a source; called once per flight of a source.
    ///   - convert: Converts a source into a file of `cache`; called once per flight of a rendition.
    ///   - tier: A store that several nodes share; nil for a node without one.
    ///   - coordinator: The other nodes; nil for a node that works alone. Without a tier, only purges are coordinated.
    ///   - onObjection: Called for each source that the block list refuses, or that flashes.
    package init(
        _ policy: Policy, state: RenditionState, cache: Cache, clock: TimeSource = .system,
        fetch: @escaping SourceLoader.Fetch, convert: @escaping Convert, tier: (any SharedTier)? = nil,
        coordinator: (any NodeCoordinator)? = nil, onObjection: @escaping @Sendable (RenditionError) -> Void = { _ in },
        logger: Logger
    ) {
        self.policy = policy
        self.state = state
        self.cache = cache
        sharing = tier.map { tier in
            SharedRenditions(
                cache: cache, tier: tier, coordinator: coordinator, admission: state.admission, failures: state.failures,
                failureScope: policy.failureScope, clock: clock)
        }
        log = ProductionLog(logger: logger)
        loader = SourceLoader(
            cache: cache, clock: clock, rules: policy.originRules, state: state.sources, failures: state.failures,
            withholds: policy.blocks != nil || policy.flashes.withholds, fetch: fetch)
        misses = MissRunner(
            originRules: policy.originRules, maxSourceBytes: policy.maxSourceBytes, state: state,
            cache: cache, clock: clock, loader: loader,
            producer: RenditionProducer(
                cache: cache, admission: state.admission, sharing: sharing, convert: convert, blocks: policy.blocks,
                flashes: policy.flashes, log: log),
            sharing: sharing, log: log, onObjection: onObjection)
    }

    /// The sources that are refused; nil for none.
    package var blocks: BlockList? { policy.blocks }

    /// The options of requests that leave them out.
    package var defaults: RenditionDefaults { policy.defaults }

    /// Finds the sources that operators name; nil for `http` and `https` URLs alone.
    package var sources: SourceRules? { policy.sources }

    // MARK: Requests

    /// Returns the rendition of a source at a URL: a stored one, or one that is produced now. If the source flashes and the
    /// policy is ``FlashLimit/still``, returns a still picture in its place.
    ///
    /// - Throws: ``RenditionError``; `cancelled` if the calling task is cancelled.
    package func find(_ request: RenditionRequest) async throws(RenditionError) -> RenditionResult {
        do throws(RenditionError) {
            return try await findMoving(request)
        } catch {
            return try await findMoving(request.with(still(of: request.rendition, after: error)))
        }
    }

    /// Returns the still picture that is sent in place of a rendition.
    ///
    /// - Parameter error: The error of the first attempt; rethrown unless the source flashes and the policy is `still`.
    private func still(of rendition: Rendition, after error: RenditionError) throws(RenditionError) -> Rendition {
        guard policy.flashes == .still, error.isOfFlashes else { throw error }
        return rendition.still
    }

    /// See ``find(_:)-(RenditionRequest)``.
    private func findMoving(_ request: RenditionRequest) async throws(RenditionError) -> RenditionResult {
        switch try await lookUp(request) {
        case .usable(let stored): return stored
        case .none(let lookup): return try await findAfresh(request, after: lookup)
        case .unconfirmed(let stored, let lookup):
            do throws(RenditionError) {
                return try await findAfresh(request, after: lookup, within: Self.confirmationLimit)
            } catch {
                return try answer(stored, since: lookup.version.epoch, to: request, after: error)
            }
        }
    }

    /// The longest wait for an origin that should confirm a stored rendition. The flight goes on after it.
    private static let confirmationLimit: Duration = .seconds(3)

    /// The answer to a request whose stored rendition the origin should have confirmed.
    ///
    /// - Parameters:
    ///   - epoch: Noted before the lookup. A purge is compared with the request that has stored the rendition.
    ///   - error: Rethrown if the origin has answered, or if the rendition was purged meanwhile.
    private func answer(
        _ stored: CachedRendition, since epoch: Epoch, to request: RenditionRequest, after error: RenditionError
    ) throws(RenditionError) -> RenditionResult {
        let epoch = epoch.began(at: stored.epoch.began)
        guard error.retry != .never, error != .cancelled, !cache.purges.overtook(epoch, sourceURL: request.source.canonical),
            !cache.purges.containsPurge(of: stored.objectID, since: epoch)
        else { throw error }
        return RenditionResult(stored, .stale(0))
    }

    /// Finds a rendition that is not stored, or that cannot be used before its origin was asked.
    ///
    /// - Parameter limit: The longest wait; nil for the limit of the settings.
    private func findAfresh(
        _ request: RenditionRequest, after lookup: EarlierLookup, within limit: Duration? = nil
    ) async throws(RenditionError) -> RenditionResult {
        if let lastFrame = try await redirectPastEnd(request) { return try await find(lastFrame) }
        await recallImage(request)
        try state.failures.check(request.key, of: request.source)
        if request.isOnlyFromStore { throw .notStored }
        let (result, joined) = try await request.allowance.spend { () async throws(RenditionError) in
            try await state.flights.value(
                for: FlightKey(request), urgency: request.urgency, client: request.client, outlivesCallers: limit != nil,
                within: limit, watch: request.watch
            ) {
                flight async throws(RenditionError) in try await misses.run(request, flight, after: lookup)
            }
        }
        if joined, wasPurged(result) { return try await findAfresh(request, after: lookup, within: limit) }
        return RenditionResult(result, joined: joined)
    }

    /// Remembers again that the source of a rendition is a still image, if the image is stored and fresh: the memory of failures
    /// is shorter, and ends with the process.
    private func recallImage(_ request: RenditionRequest) async {
        let epoch = cache.epoch
        let original = request.with(Rendition(format: .original))
        guard request.sendsStillImages, request.key != original.key, !isKnownToFail(request),
            let stored = try? await cache.rendition(for: original.key, countsMiss: false),
            case .fresh = cache.freshness(of: stored), let kind = OriginalFile.image(stored.descriptor)
        else { return }
        state.failures.remember(
            .fetchFailed(.notAnAnimation(looksLike: kind)), of: request.source, since: epoch.began(at: stored.epoch.began))
    }

    /// Whether the object of a flight was purged after its work began: a caller that has joined it may have come after the
    /// purge.
    private func wasPurged(_ result: RenditionResult) -> Bool {
        cache.purges.containsPurge(of: result.rendition.objectID, since: result.rendition.epoch)
    }

    /// Returns the rendition of a source if it is stored, else the source itself while it arrives from the origin.
    ///
    /// The rendition is produced in the background, from the same fetch. All callers of all renditions of the source share that
    /// fetch. If the rendition is known to fail, or the server has no capacity for it, its ``RenditionRequest/alternative`` is
    /// requested in its place.
    ///
    /// - Throws: ``RenditionError``, as ``find(_:)-(RenditionRequest)`` does, if there is nothing to follow.
    package func findOrFollow(_ request: RenditionRequest) async throws(RenditionError) -> FollowedResult {
        do throws(RenditionError) {
            return try await findOrFollowMoving(request)
        } catch {
            return .rendition(try await findMoving(request.with(still(of: request.rendition, after: error))))
        }
    }

    /// See ``findOrFollow(_:)``.
    private func findOrFollowMoving(_ request: RenditionRequest) async throws(RenditionError) -> FollowedResult {
        switch try await lookUp(request) {
        case .usable(let stored): return .rendition(stored)
        case .none(let lookup): return try await follow(request, after: lookup)
        case .unconfirmed(let stored, let lookup):
            do throws(RenditionError) {
                return try await follow(request, after: lookup)
            } catch {
                return .rendition(try answer(stored, since: lookup.version.epoch, to: request, after: error))
            }
        }
    }

    /// Follows the source of a rendition that is not stored; see ``findOrFollow(_:)``.
    private func follow(
        _ request: RenditionRequest, after lookup: EarlierLookup
    ) async throws(RenditionError) -> FollowedResult {
        await recallImage(request)
        if let failure = state.failures.failure(of: request.key, of: request.source) {
            // The source flashes just as its renditions do.
            if failure.isOfFlashes { throw failure }
            return try await followAlternative(to: request, after: failure)
        }
        if request.isOnlyFromStore { throw .notStored }
        do throws(RenditionError) {
            return try await request.allowance.spend { () async throws(RenditionError) in
                var request = request
                request.followsSource = true
                let buffer = try state.admission.reserve(bytes: FollowedSource.pieceLimit, for: request.client)
                return try await race(request, after: lookup, loader.follow(request.source), buffer)
            }
        } catch {
            guard error.isRefusal else { throw error }
            return try await followAlternative(to: request, after: error)
        }
    }

    /// Finds or follows the alternative to a rendition that cannot be produced now.
    private func followAlternative(
        to request: RenditionRequest, after error: RenditionError
    ) async throws(RenditionError) -> FollowedResult {
        guard let alternative = request.alternative else { throw error }
        let answer = try await findOrFollow(request.with(alternative))
        guard case .rendition(var result) = answer else { return answer }
        // Another attempt may succeed once the failure is forgotten, or the server has capacity.
        if !error.isOfImage { result.isStorable = false }
        return .rendition(result)
    }

    /// Returns the source itself in place of a rendition that cannot be produced. No cache may store that answer, because
    /// another attempt may succeed, unless the source is a still image.
    ///
    /// - Returns: Nil if the error concerns the request or the source, or the source cannot be answered either.
    /// - Throws: ``RenditionError`` for a cause in the client or this server, such as a used-up allowance: another request may
    ///   be answered with the source. Also the reason why a still image cannot be sent.
    package func original(
        insteadOf error: RenditionError, for request: RenditionRequest
    ) async throws(RenditionError) -> RenditionResult? {
        guard error.permitsOriginal else { return nil }
        var original = request.with(Rendition(format: .original))
        // Any other attempt has used the client's allowance already.
        if case .remembered = error {} else if !error.isRefusal { original.allowance = .unlimited }
        if error.isOfImage { return try await image(original) }
        do throws(RenditionError) {
            var result = try await find(original)
            result.isStorable = false
            return result
        } catch {
            if case .whenServerHasCapacity = error.retry { throw error }
            return nil
        }
    }

    /// Returns a still image. Some sites name still images `.gif`, and browsers show them.
    private func image(_ request: RenditionRequest) async throws(RenditionError) -> RenditionResult {
        if case .usable(let stored) = try await lookUp(request) { return stored }
        if let failure = state.failures.failure(of: request.key) { throw failure }
        if request.isOnlyFromStore { throw .notStored }
        let (result, joined) = try await request.allowance.spend { () async throws(RenditionError) in
            try await state.flights.value(
                for: FlightKey(request, isImage: true), urgency: request.urgency, client: request.client
            ) { flight async throws(RenditionError) in try await misses.runImage(request, flight) }
        }
        if joined, wasPurged(result) { return try await image(request) }
        return RenditionResult(result, joined: joined)
    }

    /// Returns a rendition if it is stored and may be answered. Produces and renews nothing.
    package func stored(_ request: RenditionRequest) async -> CachedRendition? {
        let stored = await usable((try? await cache.rendition(for: request.key, countsMiss: false)) ?? nil, request.rendition)
        guard let stored else {
            guard let lastFrame = try? await redirectPastEnd(request) else { return nil }
            return await self.stored(lastFrame)
        }
        return isExpired(stored) ? nil : stored
    }

    /// Whether a request for an upload's rendition would be answered at once.
    package func isStored(_ request: UploadRequest) async -> Bool {
        guard let stored = try? await cache.uploadedObject(request.id) else { return false }
        return await usable(stored, request.rendition) != nil
    }

    /// Whether an attempt to produce a rendition failed so recently that no other is made.
    package func isKnownToFail(_ request: RenditionRequest) -> Bool {
        state.failures.failure(of: request.key, of: request.source) != nil
    }

    /// Whether an attempt to produce a rendition has shown so recently that its source flashes.
    package func isKnownToFlash(_ request: RenditionRequest) -> Bool {
        state.failures.failure(of: request.key, of: request.source)?.isOfFlashes ?? false
    }

    /// Whether nothing that moves may be sent before it has been examined for flashes.
    package var withholdsMotion: Bool { policy.flashes.withholds }

    /// Produces a rendition that no caller waits for, unless it is being produced or known to fail, or the client has used up
    /// its allowance.
    package func produceBehindResponse(_ request: RenditionRequest) {
        let key = FlightKey(request)
        guard !request.isOnlyFromStore, !state.flights.isJoinable(key), !isKnownToFail(request),
            request.allowance.useIfAvailable()
        else { return }
        state.flights.start(key, urgency: request.urgency, client: request.client) {
            flight async throws(RenditionError) in
            try await request.allowance.returning { () async throws(RenditionError) in
                try await runMissBehindResponse(request, flight)
            }
        }
    }

    private enum RaceEvent: Sendable {
        case ended(Result<RenditionResult, RenditionError>)
        case arrived(FollowedSource?)
    }

    /// Runs the flight of a miss, and returns its result or the first bytes of the source, whichever comes first. If the flight
    /// fails first, returns the source if any bytes have arrived, else the error.
    ///
    /// - Parameter buffer: The memory of a client that follows the source.
    private func race(
        _ request: RenditionRequest, after lookup: EarlierLookup, _ arriving: ArrivingSource, _ buffer: AdmittedMemory
    ) async throws(RenditionError) -> FollowedResult {
        let followed = { @Sendable in FollowedSource(arriving, of: request.source, policy.originRules, buffer) }
        return try await withTaskGroup(of: RaceEvent.self) { group -> Result<FollowedResult, RenditionError> in
            group.addTask {
                do throws(RenditionError) {
                    return .ended(.success(try await fly(request, after: lookup)))
                } catch {
                    return .ended(.failure(error))
                }
            }
            group.addTask {
                _ = await arriving.awaitStart()
                return .arrived(followed())
            }
            defer { group.cancelAll() }
            for await event in group {
                switch event {
                case .arrived(let source?): return .success(.source(source))
                // The flight's error says why nothing arrives.
                case .arrived(nil): continue
                case .ended(.success(let result)): return .success(.rendition(result))
                case .ended(.failure(let error)): return followed().map { .success(.source($0)) } ?? .failure(error)
                }
            }
            return .failure(.cancelled)
        }.get()
    }

    /// Runs the flight of a miss, which goes on without callers.
    private func fly(
        _ request: RenditionRequest, after lookup: EarlierLookup
    ) async throws(RenditionError) -> RenditionResult {
        let (result, joined) = try await state.flights.value(
            for: FlightKey(request), urgency: request.urgency, client: request.client, outlivesCallers: true
        ) { flight async throws(RenditionError) in
            try await runMissBehindResponse(request, flight, after: lookup)
        }
        if joined, wasPurged(result) { return try await findAfresh(request, after: lookup) }
        return RenditionResult(result, joined: joined)
    }

    /// Runs a miss, and logs its error here because its callers may have left with the source.
    private func runMissBehindResponse(
        _ request: RenditionRequest, _ flight: Flight, after lookup: EarlierLookup? = nil
    ) async throws(RenditionError) -> RenditionResult {
        do throws(RenditionError) {
            return try await misses.run(request, flight, after: lookup)
        } catch {
            if error != .cancelled { log.failed(request, error) }
            throw error
        }
    }

    /// Returns the rendition of an uploaded source, as above.
    package func find(_ request: UploadRequest) async throws(RenditionError) -> RenditionResult {
        do throws(RenditionError) {
            return try await findMoving(request)
        } catch {
            return try await findMoving(request.with(still(of: request.rendition, after: error)))
        }
    }

    private func findMoving(_ request: UploadRequest) async throws(RenditionError) -> RenditionResult {
        await state.catchUp.wait(until: Self.catchUpLimit)
        let found = try await translating(awaiting: try await cache.uploadedObject(request.id), to: RenditionError.init)
        if let stored = await usable(found, request.rendition) { return RenditionResult(stored, .hit) }
        return try await request.allowance.spend { () async throws(RenditionError) in
            let (result, joined) = try await state.uploadFlights.value(
                for: request.id, urgency: request.urgency, client: request.client, watch: request.watch
            ) { flight async throws(RenditionError) in
                try await misses.run(request, flight)
            }
            return RenditionResult(result, joined: joined)
        }
    }

    /// Returns a stored object, from the local cache or the shared tier; nil if neither has it.
    ///
    /// - Parameters:
    ///   - allowance: Used before the shared tier is asked, because ids without an object cost a request each.
    ///   - isOnlyFromStore: Whether to skip the shared tier.
    /// - Throws: ``RenditionError/rateLimited(retryAfter:)`` if the client has used up its allowance,
    ///   ``RenditionError/storageFailed(cause:)`` if the shared tier is unavailable, ``RenditionError/overloaded(cause:)`` if
    ///   too many lookups wait.
    package func object(
        _ id: ObjectID, fileExtension: String, allowance: MissAllowance, isOnlyFromStore: Bool = false
    ) async throws(RenditionError) -> CachedRendition? {
        // No origin can confirm an object.
        await state.catchUp.wait(until: policy.objectCatchUpLimit)
        let stored = try await translating(
            awaiting: try await cache.rendition(for: id, countsMiss: true), to: RenditionError.init)
        if let stored { return stored }
        if isOnlyFromStore { throw .notStored }
        guard let sharing else { return nil }
        return try await allowance.spend { () async throws(RenditionError) in
            try await state.objectFlights.value(for: "\(id).\(fileExtension)") { _ async throws(RenditionError) in
                try await sharing.load(id, fileExtension: fileExtension)
            }.value
        }
    }

    /// Whether another miss would be admitted now.
    package var hasCapacity: Bool { state.admission.hasCapacity }

    /// Whether a miss would be admitted now, or join a flight.
    package func hasCapacity(for request: RenditionRequest) -> Bool {
        hasCapacity || state.flights.isJoinable(FlightKey(request))
    }

    // MARK: Lookup

    private enum LookUp {
        case usable(RenditionResult)
        /// May be used if the origin does not answer, and no purge has come since the lookup.
        case unconfirmed(CachedRendition, EarlierLookup)
        case none(EarlierLookup)
    }

    /// The time after a start in which requests wait for the purges that this node missed. After it, the origin is asked.
    private static let catchUpLimit: Duration = .seconds(2)

    /// Returns what the cache can answer. Starts the renewal of a stale rendition in the background.
    ///
    /// - Throws: ``RenditionError/overloaded(cause:)`` if too many lookups wait. A miss would cost more.
    private func lookUp(_ request: RenditionRequest) async throws(RenditionError) -> LookUp {
        await state.catchUp.wait(until: Self.catchUpLimit)
        // The epoch of the rendition may be older than the event that made it unconfirmed.
        let version = cache.version
        let found = try await translating(
            awaiting: try await cache.rendition(for: request.key, countsMiss: true), to: RenditionError.init)
        let stored = await usable(found, request.rendition)
        let lookup = EarlierLookup(stored: stored, version: version)
        guard let stored else { return .none(lookup) }
        switch cache.freshness(of: stored) {
        case .fresh:
            return .usable(RenditionResult(stored, .hit))
        case .stale where stored.isOfIncompleteSource:
            return .none(lookup)
        case .stale(let age):
            let failure = state.failures.failure(of: request.key, of: request.source)
            // Another request, or another node, has found that the origin does not have the animation.
            if case .remembered(let cause, _) = failure, await misses.removeIfGone(request, after: cause) {
                return .none(lookup)
            }
            // An origin that is known to fail is not asked again. The fetch of an image that is no animation fails for itself.
            let isImage = request.rendition.format == .original && failure?.isOfImage ?? false
            let obstacle = isImage ? state.failures.failure(of: request.key) : failure
            if obstacle == nil { renewBehindResponse(request, isImage: isImage) }
            return .usable(RenditionResult(stored, .stale(age)))
        case .unconfirmed:
            return stored.isOfIncompleteSource ? .none(lookup) : .unconfirmed(stored, lookup)
        case .expired:
            return .none(lookup)
        }
    }

    /// Starts the renewal of a stale rendition, which counts as a miss of the client. Without an allowance, it is left to a
    /// later request.
    private func renewBehindResponse(_ request: RenditionRequest, isImage: Bool) {
        let key = FlightKey(request, isImage: isImage)
        guard !request.isOnlyFromStore, !state.flights.isJoinable(key), request.allowance.useIfAvailable() else { return }
        state.flights.start(key, urgency: .renewal) { flight async throws(RenditionError) in
            try await request.allowance.returning { () async throws(RenditionError) -> RenditionResult in
                if isImage { return try await misses.runImage(request, flight) }
                return try await misses.run(request, flight)
            }
        }
    }

    /// The request for the poster of the last frame, if cached facts show that the requested frame is past the end. All such
    /// requests share one alias.
    ///
    /// - Throws: ``RenditionError/overloaded(cause:)`` if too many lookups wait.
    private func redirectPastEnd(_ request: RenditionRequest) async throws(RenditionError) -> RenditionRequest? {
        guard let last = request.rendition.pastEnd, last != request.rendition,
            let frame = request.rendition.options.frame.number
        else { return nil }
        let redirected = request.with(last)
        let found = try await translating(
            awaiting: try await cache.rendition(for: redirected.key, countsMiss: false), to: RenditionError.init)
        guard let stored = found, let facts = RenditionFacts(stored: stored.facts), facts.frames <= frame else { return nil }
        return isExpired(stored) ? nil : redirected
    }

    /// Whether a rendition must not be sent before the origin has been asked. A rendition of a source that breaks off is never
    /// sent stale: the source may be complete now.
    private func isExpired(_ stored: CachedRendition) -> Bool {
        switch cache.freshness(of: stored) {
        case .fresh: false
        case .stale: stored.isOfIncompleteSource
        case .expired, .unconfirmed: true
        }
    }

    /// Returns the stored rendition, unless it is a damaged facts document. The cache then drops it, so that it is produced
    /// again.
    private func usable(_ stored: CachedRendition?, _ rendition: Rendition) async -> CachedRendition? {
        guard let stored, rendition.format == .json, !FactsFile.isKnown(stored) else { return stored }
        let isReadable = try? await cache.onThread { () throws(CacheError) in FactsFile.read(stored) != nil }
        guard isReadable == false else { return stored }
        await cache.discardCorrupt(stored)
        return nil
    }
}
