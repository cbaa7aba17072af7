package import Cache
internal import Fetch
package import Logging
internal import Media
internal import Sandbox

/// Makes what the cache does not have: find a place ▸ fetch ▸ look for the object ▸ convert ▸ publish.
///
/// Stateless but for what it was given; any number of calls may be under way. Each is the work of one ``Flight``.
package struct RenditionMaker: Sendable {
    package typealias Convert = @Sendable (Source, Rendition, Flight) async -> Result<Converter.Conversion, RenditionError>

    /// What a making came to.
    struct Made: Sendable {
        var rendition: CachedRendition
        var provenance: RenditionStore.Provenance
        var times = StageTimes()
    }

    let cache: Cache
    let clock: CacheClock
    let rules: OriginRules
    package let state: RenditionState
    /// The largest GIF there may be, in bytes.
    let largest: Int
    let fetches: SourceFetches
    let convert: Convert
    let logger: Logger

    /// - Parameter largest: The largest GIF, in bytes.
    package init(
        cache: Cache, clock: CacheClock, rules: OriginRules, state: RenditionState, largest: Int, fetches: SourceFetches,
        convert: @escaping Convert, logger: Logger
    ) {
        self.cache = cache
        self.clock = clock
        self.rules = rules
        self.state = state
        self.largest = largest
        self.fetches = fetches
        self.convert = convert
        self.logger = logger
    }

    /// Fetches the source and makes the rendition, unless it is stored by now or the origin says that what is stored is right.
    func make(_ rendition: Rendition, of url: SourceURL, _ flight: Flight) async -> Result<Made, RenditionError> {
        let key = AliasKey(sourceURL: url.canonical, rendition: rendition.canonicalText)
        // Looked up again inside the flight: one that landed just now may have brought it.
        let known = await cache.alias(key, isFirstLook: false)
        if let known, case .fresh = cache.freshness(of: known) { return .success(Made(rendition: known, provenance: .hit)) }
        if let problem = state.failures.problem(with: url, rendition) { return .failure(problem) }
        // Before anything is fetched: what cannot be done now is refused at once.
        guard let place = state.admission.admit(MissAdmission.Origin(url), bytes: largest, urgency: flight.turn.urgency) else {
            return .failure(.overloaded(cause: nil))
        }
        // Held to the end, whatever the compiler thinks of it.
        defer { withExtendedLifetime(place) {} }
        let validators = known?.alias?.validators
        let outcome = await fetches.fetch(
            url, validators: SourceValidators(etag: validators?.etag, lastModified: validators?.lastModified))
        switch outcome {
        case .failed(let failure):
            // Gone is an answer, not a failure: what is stored is no more to be given out than if it had been purged.
            if known != nil, failure.isSourceMissing { await forget(url) }
            return .failure(failure)
        case .notModified(let unmodified, let epoch):
            return await renew(rendition, of: url, known, unmodified, epoch)
        case .fetched(let gif):
            place.settle(bytes: gif.source.count)
            if known != nil, !gif.keeping.isAllowed { await forget(url) }
            // Noted before the conversion, so that a purge during it is not undone by remembering how it failed.
            let memory = state.failures.epoch
            let made = await make(
                rendition, of: gif.source, epoch: gif.epoch, keeping: gif.keeping, flight, StageTimes(fetch: gif.time))
            if case .failure(let problem) = made, !cache.isPurged(url.canonical, since: gif.epoch) {
                state.failures.remember(problem, with: url, rendition, since: memory)
            }
            // Others may be making something of the same GIF; as long as somebody does, it is not fetched again.
            return withExtendedLifetime(gif) { made }
        }
    }

    /// Makes the rendition of a GIF that is here.
    func make(
        _ rendition: Rendition, of source: Source, epoch: Epoch, keeping: OriginRules.Keeping = OriginRules.Keeping(),
        _ flight: Flight, _ times: StageTimes = StageTimes()
    ) async -> Result<Made, RenditionError> {
        let id = ObjectID(
            source: source.digest, rendition: rendition.canonicalText, encoderVersion: rendition.encoderVersion)
        let alias = keeping.isAllowed ? source.alias(rendition, freshFor: keeping.freshFor) : nil
        if let present = await existing(id, of: source, alias: alias, epoch: epoch) {
            let provenance = keeping.isAllowed ? Self.provenance(present) : .unstored(.unwanted)
            return .success(Made(rendition: present.rendition, provenance: provenance, times: times))
        }
        if rendition.format == .gif { return await keep(source, as: id, alias, epoch: epoch, keeping, times) }
        do throws(RenditionError) {
            let conversion = try await convert(source, rendition, flight).get()
            let report = conversion.report
            var times = times
            times.queue = report.queued
            times.transcode = report.ran
            times.cpu = .microseconds(report.cpuMicroseconds)
            let facts = RenditionFacts(report.result, sourceBytes: source.count)
            var (id, alias) = (id, alias)
            if let last = rendition.pastEnd, report.result.frames <= rendition.options.frame {
                // The frame is past the end: all such numbers share one alias, and one object with the last frame's number.
                let exact = rendition.ofFrame(report.result.frames - 1)
                id = ObjectID(
                    source: source.digest, rendition: exact.canonicalText, encoderVersion: exact.encoderVersion)
                alias = keeping.isAllowed ? source.alias(last, freshFor: keeping.freshFor) : nil
                if let present = await existing(id, of: source, alias: alias, epoch: epoch) {
                    let provenance = keeping.isAllowed ? Self.provenance(present) : .unstored(.unwanted)
                    return .success(Made(rendition: present.rendition, provenance: provenance, times: times))
                }
            }
            let outcome: PublishOutcome
            do throws(CacheError) {
                outcome = try await cache.publish(
                    conversion.file, as: id, fileExtension: rendition.format.rawValue, facts: facts.encoded, alias: alias,
                    epoch: epoch, storing: keeping.isAllowed)
            } catch {
                throw RenditionError(error)
            }
            MakingLog(logger).made(rendition, source, report, outcome)
            return .success(Made(rendition: outcome.rendition, provenance: Self.provenance(outcome), times: times))
        } catch {
            return .failure(error)
        }
    }

    // MARK: Stages

    /// The origin says that what is stored is right.
    private func renew(
        _ rendition: Rendition, of url: SourceURL, _ known: CachedRendition?, _ unmodified: UnmodifiedSource, _ epoch: Epoch
    ) async -> Result<Made, RenditionError> {
        // Only what is known is asked about, and that is held open.
        guard let known, let alias = known.alias else { return .failure(.overloaded(cause: nil)) }
        let times = StageTimes(fetch: unmodified.duration)
        let keeping = rules.keeping(unmodified.cacheDirectives, of: url)
        guard keeping.isAllowed else {
            await forget(url)
            return .success(Made(rendition: known, provenance: .unstored(.unwanted), times: times))
        }
        let renewed = await cache.renew(
            alias.key,
            validators: Validators(etag: unmodified.validators.etag, lastModified: unmodified.validators.lastModified),
            fetchedAt: clock.unixSeconds(), freshFor: keeping.freshFor ?? alias.freshFor, epoch: epoch)
        // Where that could not be written down, what is known is still right to answer with.
        return .success(Made(rendition: renewed ?? known, provenance: .renewed, times: times))
    }

    /// Takes what is stored of the source out of the cache. Where that does not last over a restart, it is found out again.
    private func forget(_ url: SourceURL) async {
        do throws(CacheError) {
            _ = try await cache.purge(url: url.canonical)
        } catch {
            logger.warning("could not forget a source", metadata: ["source_host": "\(url.host)", "cause": "\(error)"])
        }
    }

    /// The object, where it has been made before of the same bytes under another name.
    private func existing(
        _ id: ObjectID, of source: Source, alias: AliasRecord?, epoch: Epoch
    ) async -> PublishOutcome? {
        if let alias { return await cache.link(alias, to: id, epoch: epoch) }
        if source.origin == nil { return await cache.uploadedObject(id).map { .existing($0) } }
        return await cache.object(id).map { .existing($0) }
    }

    static func provenance(_ outcome: PublishOutcome) -> RenditionStore.Provenance {
        if case .unstored(_, let reason) = outcome { return .unstored(reason) }
        return .stored
    }
}
