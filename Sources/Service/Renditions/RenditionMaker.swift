internal import Cache
internal import Fetch
internal import Glibc
internal import Logging
internal import Media
internal import Sandbox
internal import SystemIO

/// Makes what the cache does not have: fetch ▸ look for the object ▸ transcode ▸ publish.
///
/// Stateless but for what it was given; any number of calls may be under way.
struct RenditionMaker: Sendable {
    /// What a making came to.
    struct Made: Sendable {
        var rendition: CachedRendition
        var isStored: Bool
        var times: StageTimes
    }

    let cache: Cache
    let clock: CacheClock
    let fetcher: Fetcher
    let pool: WorkerPool
    let configuration: ServiceConfiguration
    let logger: Logger
    /// One fetch a source, for all renditions that are made of it meanwhile.
    let fetches = FlightTable<SourceURL, Result<FetchOutcome, FetchError>>()

    /// Fetches the source and makes the rendition, unless the object is there already.
    ///
    /// - Parameter known: What is stored under the alias but not fresh any more; where the origin says that its GIF has
    ///   not changed, that is renewed.
    func make(_ rendition: Rendition, of url: SourceURL, known: CachedRendition? = nil) async -> Result<Made, Problem> {
        let key = AliasKey(sourceURL: url.canonical, rendition: rendition.canonicalText)
        // Noted first: whatever is purged from here on is not stored by this call.
        let epoch = cache.epoch(for: url.canonical)
        guard hasRoom else { return .failure(.overloaded) }
        let outcome: FetchOutcome
        switch await fetch(url, validators: known?.alias?.validators) {
        case .success(let fetched): outcome = fetched
        case .failure(let error): return .failure(Problem(error))
        }
        switch outcome {
        case .notModified(let unmodified):
            let validators = Validators(
                etag: unmodified.validators.etag, lastModified: unmodified.validators.lastModified)
            let renewed = await cache.renew(
                key, validators: validators, fetchedAt: clock.unixSeconds(), freshFor: nil, epoch: epoch)
            if let made = renewed ?? known {
                return .success(Made(rendition: made, isStored: true, times: StageTimes(fetch: unmodified.timings.total)))
            }
            // The origin's answer was to validators of something that is gone by now.
            return await make(rendition, of: url)
        case .fetched(let fetched):
            guard let digest = SourceDigest(bytes: fetched.sha256) else { return .failure(.overloaded) }
            let validators = Validators(etag: fetched.validators.etag, lastModified: fetched.validators.lastModified)
            let source = Source(
                bytes: fetched.bytes, count: fetched.count, digest: digest,
                origin: Source.Origin(url: url, validators: validators, fetchedAt: clock.unixSeconds()))
            return await make(rendition, of: source, epoch: epoch, times: StageTimes(fetch: fetched.timings.total))
        }
    }

    /// Makes the rendition of a GIF that is here.
    func make(
        _ rendition: Rendition, of source: Source, epoch: Epoch, times: StageTimes = StageTimes()
    ) async -> Result<Made, Problem> {
        let id = ObjectID(
            source: source.digest, rendition: rendition.canonicalText, encoderVersion: rendition.encoderVersion)
        let alias = source.origin.map { origin in
            AliasRecord(
                key: AliasKey(sourceURL: origin.url.canonical, rendition: rendition.canonicalText),
                sourceURL: origin.url.canonical, validators: origin.validators, fetchedAt: origin.fetchedAt)
        }
        if let present = await existing(id, alias: alias, epoch: epoch) {
            return .success(Made(rendition: present.rendition, isStored: present.isStored, times: times))
        }
        do throws(Problem) {
            let (file, report) = try await transcode(source, to: rendition)
            var times = times
            times.queue = report.queued
            times.transcode = report.ran
            let facts = RenditionFacts(report.result, sourceBytes: source.count)
            let outcome: PublishOutcome
            do throws(CacheError) {
                outcome = try await cache.publish(
                    file, as: id, fileExtension: rendition.format.rawValue, facts: facts.encoded, alias: alias, epoch: epoch)
            } catch {
                throw Problem(error)
            }
            logMade(rendition, source, report, outcome)
            return .success(Made(rendition: outcome.rendition, isStored: outcome.isStored, times: times))
        } catch {
            return .failure(error)
        }
    }

    // MARK: Stages

    /// Whether another job may be taken on. Asked before anything is fetched for it.
    private var hasRoom: Bool { pool.load.waiting < pool.configuration.queue + 1 }

    private func fetch(_ url: SourceURL, validators: Validators?) async -> Result<FetchOutcome, FetchError> {
        // A conditional fetch has an answer of its own, which nobody without those validators can use.
        if let validators, validators != Validators() {
            return await fetchAlone(url, SourceValidators(etag: validators.etag, lastModified: validators.lastModified))
        }
        let landing = await fetches.outcome(of: url) { await fetchAlone(url, nil) }
        return landing?.outcome ?? .failure(.cancelled)
    }

    private func fetchAlone(_ url: SourceURL, _ validators: SourceValidators?) async -> Result<FetchOutcome, FetchError> {
        do throws(FetchError) {
            return .success(try await fetcher.fetch(url, validators: validators))
        } catch {
            return .failure(error)
        }
    }

    /// The object, where it has been made before of the same bytes under another name.
    private func existing(_ id: ObjectID, alias: AliasRecord?, epoch: Epoch) async -> PublishOutcome? {
        if let alias { return await cache.link(alias, to: id, epoch: epoch) }
        return await cache.object(id).map { .existing($0) }
    }

    /// Runs a worker. When the disk fills up under it, it runs once more with a file in memory.
    private func transcode(_ source: Source, to rendition: Rendition) async throws(Problem) -> (StagedFile, WorkerReport) {
        let job = WorkerJob(
            transcoder: Transcoder(
                options: rendition.options,
                limits: configuration.limits),
            allowance: configuration.allowance)
        let file = try stage { () throws(CacheError) in try cache.stage(expecting: Int64(source.count)) }
        do throws(SandboxError) {
            return (file, try await pool.run(job, input: source.bytes, output: file.descriptor))
        } catch {
            guard case .rejected(.failed(_, let code)) = error, code == -ENOSPC, !file.isInMemory else {
                throw Problem(error, limit: configuration.allowance)
            }
        }
        let memory = try stage { () throws(CacheError) in try cache.stageInMemory() }
        do throws(SandboxError) {
            return (memory, try await pool.run(job, input: source.bytes, output: memory.descriptor))
        } catch {
            throw Problem(error, limit: configuration.allowance)
        }
    }

    private func stage(_ make: () throws(CacheError) -> StagedFile) throws(Problem) -> StagedFile {
        do throws(CacheError) {
            return try make()
        } catch {
            throw Problem(error)
        }
    }

    private func logMade(_ rendition: Rendition, _ source: Source, _ report: WorkerReport, _ outcome: PublishOutcome) {
        var metadata: Logger.Metadata = [
            "rendition": "\(rendition.canonicalText)", "gif_bytes": "\(source.count)", "bytes": "\(report.result.bytes)",
            "frames": "\(report.result.frames)", "ms": "\(report.ran / .milliseconds(1))",
            "cpu_ms": "\(report.cpuMicroseconds / 1000)",
        ]
        if let origin = source.origin { metadata["source_host"] = "\(origin.url.host)" }
        if case .unstored(_, let reason) = outcome {
            metadata["reason"] = "\(reason)"
            logger.warning("made a rendition that is not stored", metadata: metadata)
        } else {
            logger.info("made a rendition", metadata: metadata)
        }
    }
}

extension PublishOutcome {
    var isStored: Bool {
        if case .unstored = self { return false }
        return true
    }
}
