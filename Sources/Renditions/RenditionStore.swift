package import Cache
package import Fetch
internal import Media
package import Sandbox

/// Finds renditions, or has them made: the order on a miss, and what is done with what is stale. What is purged here is out
/// of reach everywhere.
package struct RenditionStore: Sendable {
    /// Where an answer came from, for `Cache-Status` (RFC 9211).
    package enum Provenance: Sendable, Equatable {
        case hit
        /// Out of date for so many seconds, and being renewed.
        case stale(Int64)
        /// It was out of date, and the origin says that it is right.
        case renewed
        case stored
        /// Made, but not kept.
        case unstored(UnstoredReason)
        /// Joined work that was in flight.
        case collapsed
    }

    package struct Found: Sendable {
        package var rendition: CachedRendition
        package var provenance: Provenance
        /// Whether caches on the way may keep it.
        package var isStorable = true
        package var times = StageTimes()
    }

    /// A rendition of a source.
    struct Key: Hashable, Sendable {
        let url: SourceURL
        let rendition: Rendition
    }

    package let cache: Cache
    package let maker: RenditionMaker
    private let state: RenditionState
    private typealias Made = RenditionMaker.Made

    package init(cache: Cache, maker: RenditionMaker) {
        self.cache = cache
        self.maker = maker
        state = maker.state
    }

    /// What can be answered at once without waiting for anything; nil sends the caller to ``find(_:of:urgency:_:)``.
    package func hot(_ key: AliasKey) -> CachedRendition? {
        guard let found = cache.hotAlias(key), case .fresh = cache.freshness(of: found) else { return nil }
        return found
    }

    /// The rendition from the cache, or else made now. Nil when the calling task was cancelled.
    ///
    /// - Parameters:
    ///   - urgency: Whose turn it is where several wait for a worker: ``Urgency/prewarm`` for what nobody has asked
    ///     for yet.
    ///   - allowance: Used where neither the cache nor the memory of problems has anything to answer with.
    package func find(
        _ rendition: Rendition, of url: SourceURL, urgency: Urgency = .visitor, _ allowance: MissAllowance = .unlimited
    ) async -> Result<Found, RenditionError>? {
        let key = Key(url: url, rendition: rendition)
        let work: @Sendable (Flight) async -> Result<Made, RenditionError> = { [maker] in
            await maker.make(rendition, of: url, $0)
        }
        let alias = AliasKey(sourceURL: url.canonical, rendition: rendition.canonicalText)
        if let known = await usable(await cache.alias(alias), rendition) {
            switch cache.freshness(of: known) {
            case .fresh:
                return .success(Found(rendition: known, provenance: .hit))
            case .stale(let age):
                // While the origin is known to fail it is left alone.
                if state.failures.problem(with: url, rendition) == nil { state.flights.launch(key, urgency: .renewal, work) }
                return .success(Found(rendition: known, provenance: .stale(age)))
            case .expired:
                break
            }
        }
        if let last = rendition.pastEnd, last != rendition, await isPastEnd(rendition, storedAs: last, of: url) {
            return await find(last, of: url, urgency: urgency, allowance)
        }
        if let problem = state.failures.problem(with: url, rendition) { return .failure(problem) }
        if let refusal = allowance.use() { return .failure(refusal) }
        return Self.found(await state.flights.outcome(of: key, urgency: urgency, work))
    }

    /// Whether a stored poster of the last frame, which is not expired, tells that a poster's frame is past the end.
    private func isPastEnd(_ rendition: Rendition, storedAs last: Rendition, of url: SourceURL) async -> Bool {
        let alias = AliasKey(sourceURL: url.canonical, rendition: last.canonicalText)
        guard let known = await cache.alias(alias, isFirstLook: false), let facts = RenditionFacts(stored: known.facts) else {
            return false
        }
        if case .expired = cache.freshness(of: known) { return false }
        return facts.frames <= rendition.options.frame
    }

    /// The rendition of an uploaded GIF. Nil when the calling task was cancelled.
    package func find(
        _ rendition: Rendition, of source: Source, urgency: Urgency = .visitor, _ allowance: MissAllowance = .unlimited
    ) async -> Result<Found, RenditionError>? {
        let id = ObjectID(
            source: source.digest, rendition: rendition.canonicalText, encoderVersion: rendition.encoderVersion)
        if let known = await usable(await cache.uploadedObject(id), rendition) {
            return .success(Found(rendition: known, provenance: .hit))
        }
        if let refusal = allowance.use() { return .failure(refusal) }
        let landing = await state.uploadFlights.outcome(of: id, urgency: urgency) { [maker] flight in
            guard let place = maker.state.admission.admit(nil, bytes: source.count, urgency: flight.turn.urgency) else {
                return .failure(.overloaded(cause: nil))
            }
            defer { withExtendedLifetime(place) {} }
            return await maker.make(rendition, of: source, epoch: maker.cache.epoch(for: nil), flight)
        }
        return Self.found(landing)
    }

    /// The rendition; nil where it is a facts document that is damaged. The cache then drops it, so that it is made again.
    private func usable(_ known: CachedRendition?, _ rendition: Rendition) async -> CachedRendition? {
        guard let known, rendition.format == .json, FactsFile.read(known) == nil else { return known }
        await cache.discardCorrupt(known)
        return nil
    }

    /// Whether another conversion would be admitted now.
    package var hasRoom: Bool { state.admission.hasRoom }

    /// Forgets what `scope` covers: what is stored, what is remembered not to work, and what is in flight. That goes on for
    /// those who wait for it already, but nobody who comes after this has returned gets anything of it.
    package func purge(_ scope: PurgeScope) async throws(CacheError) -> PurgeResult {
        let result: Result<PurgeResult, CacheError>
        do throws(CacheError) {
            result = .success(try await cache.purge(scope))
        } catch {
            result = .failure(error)
        }
        // The fetches first: a making that is begun after its table was closed cannot join a fetch from before the purge.
        maker.fetches.close(scope)
        state.flights.close { scope.covers($0.url.canonical) }
        switch scope {
        case .all: state.uploadFlights.close { _ in true }
        case .object(let id):
            // Which object a flight leads to is known only once its source has been fetched.
            state.flights.close { _ in true }
            state.uploadFlights.close { $0 == id }
        case .url, .prefix: break
        }
        state.failures.purge(scope)
        return try result.get()
    }

    /// Renditions in progress.
    package var inProgressCount: Int { state.flights.count + state.uploadFlights.count }

    private static func found<Key>(_ landing: FlightTable<Key, Result<Made, RenditionError>>.Landing) -> Result<
        Found, RenditionError
    >? {
        switch landing {
        case .cancelled: nil
        case .timedOut: .failure(.overloaded(cause: nil))
        case .landed(.failure(let problem), _): .failure(problem)
        case .landed(.success(let made), let joined):
            .success(
                Found(
                    rendition: made.rendition, provenance: joined ? .collapsed : made.provenance,
                    isStorable: made.provenance != .unstored(.unwanted), times: made.times))
        }
    }
}
