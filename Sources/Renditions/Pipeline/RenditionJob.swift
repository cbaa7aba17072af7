internal import Fetch
internal import Logging
internal import Media
internal import Sandbox
internal import Store

/// A rendition on its way from the source's bytes into the cache.
struct RenditionJob: Sendable {
    let rendition: Rendition
    let source: SourceFile
    let id: ObjectID
    /// The alias to publish; nil for an upload, or if the origin forbids storing. See ``alias(with:)``.
    private let alias: AliasRecord?
    let epoch: Epoch
    let storage: StoragePermission
    /// The facts of a source that breaks off and is stored unchanged, without a worker; nil for other jobs.
    var factsOfIncompleteSource: RenditionFacts?
    private var times: StageTimes

    /// A rendition of an uploaded source.
    init(_ rendition: Rendition, of source: SourceFile, epoch: Epoch) {
        self.init(rendition, named: rendition, of: source, epoch: epoch, StoragePermission(), StageTimes())
    }

    /// A rendition of a fetched source.
    init(_ rendition: Rendition, of loaded: LoadedSource) {
        self.init(
            rendition, named: rendition, of: loaded.source, epoch: loaded.epoch, loaded.storage,
            StageTimes(fetch: loaded.time))
    }

    /// - Parameter name: The rendition whose alias is published.
    private init(
        _ rendition: Rendition, named name: Rendition, of source: SourceFile, epoch: Epoch, _ storage: StoragePermission,
        _ times: StageTimes
    ) {
        self.rendition = rendition
        self.source = source
        id = ObjectID(source.digest, source.format, rendition)
        alias = storage.isAllowed ? source.alias(of: name, storage) : nil
        self.epoch = epoch
        self.storage = storage
        self.times = times
    }

    /// Returns the job for the facts of the same source, with the requested facts added.
    func facts(_ requested: TranscodeOptions.Facts) -> RenditionJob {
        let rendition = Rendition.facts(requested)
        return RenditionJob(rendition, named: rendition, of: source, epoch: epoch, storage, times)
    }

    /// The alias to publish with an object, or to link to one; nil for an upload, or if the origin forbids storing.
    ///
    /// - Parameter facts: The facts of the object; empty before they are known. An alias of a source that breaks off is fresh
    ///   for a short time.
    func alias(with facts: [UInt8]) -> AliasRecord? {
        guard var alias else { return nil }
        if factsOfIncompleteSource != nil || RenditionFacts(stored: facts)?.isOfIncompleteSource ?? false {
            alias.times.freshFor = storage.freshForIncomplete
        }
        return alias
    }

    func converted(_ report: WorkerReport) -> RenditionJob {
        var job = self
        job.times.queue = report.queued
        job.times.transcode = report.ran
        job.times.cpu = .microseconds(report.cpuMicroseconds)
        return job
    }

    /// Returns the job for a poster whose frame is past the end. All such frames share one alias and one object: that of the
    /// last frame.
    func pastEnd(as shared: Rendition, lastFrame: Int) -> RenditionJob {
        RenditionJob(rendition.ofFrame(lastFrame), named: shared, of: source, epoch: epoch, storage, times)
    }

    /// The result for the callers of the flight.
    func result(_ outcome: PublishOutcome) -> RenditionResult {
        RenditionResult(outcome.rendition, storage.isAllowed ? Self.provenance(outcome) : .unstored(.unwanted), times: times)
    }

    /// The result with a provenance other than that of the outcome.
    func result(_ outcome: PublishOutcome, as provenance: RenditionResult.Provenance) -> RenditionResult {
        RenditionResult(outcome, from: provenance, times: times)
    }

    private static func provenance(_ outcome: PublishOutcome) -> RenditionResult.Provenance {
        if case .unstored(_, let reason) = outcome { return .unstored(reason) }
        return .stored
    }
}

/// Log lines about produced renditions.
struct ProductionLog: Sendable {
    let logger: Logger

    func produced(_ job: RenditionJob, _ report: WorkerReport, _ outcome: PublishOutcome) {
        var metadata: Logger.Metadata = [
            "rendition": "\(job.rendition.canonicalText)", "source_bytes": .stringConvertible(job.source.count),
            "bytes": .stringConvertible(report.result.bytes), "frames": .stringConvertible(report.result.frames),
            "transcode_ms": .stringConvertible((report.ran / .microseconds(100)).rounded() / 10),
            "cpu_ms": .stringConvertible((Double(report.cpuMicroseconds) / 100).rounded() / 10),
        ]
        if let origin = job.source.origin { metadata["source_host"] = "\(origin.url.host)" }
        switch outcome {
        case .unstored(_, .unwanted):
            logger.info("produced a rendition that its origin forbids to store", metadata: metadata)
        case .unstored(_, let reason):
            metadata["reason"] = "\(reason)"
            // A purge is deliberate, so it is no reason for a warning.
            let level: Logger.Level = reason == .purged ? .info : .warning
            logger.log(level: level, "produced a rendition that could not be stored", metadata: metadata)
        case .stored, .existing:
            logger.info("produced a rendition", metadata: metadata)
        }
    }

    /// Logs that a source is on the block list, or that it flashes; nothing for other errors.
    func objected(to source: SourceFile, _ error: RenditionError) {
        var metadata: Logger.Metadata = [
            "source_host": "\(source.origin?.url.host ?? "upload")", "sha256": "\(source.digest)",
        ]
        switch error {
        case .blocked(let label):
            metadata["label"] = "\(label)"
            logger.notice("refused a source that is on the block list", metadata: metadata)
        case .flashing(let general, let red):
            metadata["general"] = .stringConvertible(general)
            metadata["red"] = .stringConvertible(red)
            logger.notice("a source flashes more often than WCAG 2.3.1 allows", metadata: metadata)
        default: break
        }
    }

    func failed(_ request: RenditionRequest, _ error: RenditionError) {
        logger.notice(
            "could not produce a rendition",
            metadata: [
                "rendition": "\(request.rendition.canonicalText)", "source_host": "\(request.source.host)",
                "cause": "\(error)",
            ])
    }

    func couldNotForget(_ source: SourceURL, _ error: CacheError) {
        logger.warning("could not forget a source", metadata: ["source_host": "\(source.host)", "cause": "\(error)"])
    }
}
