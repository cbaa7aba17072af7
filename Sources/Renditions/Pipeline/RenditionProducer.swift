internal import Media
internal import Sandbox
internal import Store
internal import SystemIO
internal import Tracing

/// The last steps of a miss, once the source is in memory: reuse (from the local cache or the shared tier), convert, publish.
///
/// Any thread; calls suspend and never block.
struct RenditionProducer: Sendable {
    let cache: Cache
    let admission: Admission
    let sharing: SharedRenditions?
    let convert: RenditionPipeline.Convert
    /// The sources that ``check(_:_:storing:)`` refuses; nil without a list.
    let blocks: BlockList?
    /// Whether ``check(_:_:storing:)`` counts flashes.
    let flashes: FlashLimit
    let log: ProductionLog

    /// Returns the rendition if it is stored already, else converts the source and publishes the file.
    func produce(_ job: RenditionJob, _ flight: Flight) async throws(RenditionError) -> RenditionResult {
        var job = job
        if job.rendition.format == .original { job.factsOfIncompleteSource = await factsIfIncomplete(job.source) }
        if let result = try await reuse(job) { return result }
        if let result = await sharing?.load(job) { return result }
        if job.rendition.format == .original { return try await publishOriginal(job) }
        let conversion = try await traced(job, flight)
        var finished = job.converted(conversion.report)
        if let last = finished.rendition.pastEnd, let frame = finished.rendition.options.frame.number,
            conversion.report.result.frames <= frame
        {
            finished = finished.pastEnd(as: last, lastFrame: conversion.report.result.frames - 1)
            // The conversion is done, so an overloaded cache is no reason to fail.
            if let result = try? await reuse(finished) { return result }
        }
        let outcome = try await publish(
            conversion.file, finished,
            facts: RenditionFacts(
                conversion.report.result, of: finished.rendition.format, codecs: conversion.report.codecs,
                sourceBytes: job.source.count))
        log.produced(finished, conversion.report, outcome)
        return finished.result(outcome)
    }

    /// Converts the source, and records the time in the queue and the conversion in the request's trace.
    private func traced(
        _ job: RenditionJob, _ flight: Flight
    ) async throws(RenditionError) -> Converter.Conversion {
        let submitted = DefaultTracerClock.now
        do throws(RenditionError) {
            let conversion = try await convert(job.source, job.rendition, flight)
            let report = conversion.report
            recordSpan("queue", from: submitted, for: report.queued)
            recordSpan("convert", from: submitted + report.queued, for: report.ran, report.attributes(of: job))
            return conversion
        } catch {
            // Without a report, the time in the queue is a part of the conversion.
            recordSpan(flight.turn.hasBegun ? "convert" : "queue", from: submitted, error: error)
            throw error
        }
    }

    /// Returns the object if it is stored, for instance for the same bytes at another URL, and links the alias to it.
    ///
    /// - Throws: ``RenditionError/overloaded(cause:)`` if the cache is too busy to look up the object.
    func reuse(_ job: RenditionJob) async throws(RenditionError) -> RenditionResult? {
        if let alias = job.alias(with: []) { return await link(alias, job).map(job.result) }
        do throws(CacheError) {
            let stored =
                if job.source.origin == nil {
                    try await cache.uploadedObject(job.id)
                } else {
                    try await cache.rendition(for: job.id, countsMiss: false)
                }
            return stored.map { job.result(.existing($0)) }
        } catch {
            throw RenditionError(error)
        }
    }

    /// Links the alias to the object; nil if there is no such object.
    private func link(_ alias: AliasRecord, _ job: RenditionJob) async -> PublishOutcome? {
        let linked = await cache.link(alias, to: job.id, epoch: job.epoch)
        // Only the object shows whether its source breaks off.
        guard let linked, let known = job.alias(with: linked.rendition.facts), known != alias else { return linked }
        return await cache.link(known, to: job.id, epoch: job.epoch)
    }

    /// Publishes the GIF itself, for clients that do not accept the video. The fetcher has checked its signature, and no
    /// worker decodes it.
    private func publishOriginal(_ job: RenditionJob) async throws(RenditionError) -> RenditionResult {
        let file = try await translating(
            awaiting: try await cache.stage(copyOf: job.source.bytes, count: job.source.count), to: RenditionError.init)
        return job.result(try await publish(file, job, facts: job.factsOfIncompleteSource))
    }

    /// Returns the stored facts of a source that breaks off; nil for other sources, and if no facts are stored.
    private func factsIfIncomplete(_ source: SourceFile) async -> RenditionFacts? {
        let id = ObjectID(source.digest, source.format, Rendition(format: .json))
        guard let stored = try? await cache.rendition(for: id, countsMiss: false), stored.isOfIncompleteSource else {
            return nil
        }
        return RenditionFacts(stored: stored.facts)
    }

    func publish(
        _ file: StagedFile, _ job: RenditionJob, facts: RenditionFacts?
    ) async throws(RenditionError) -> PublishOutcome {
        let facts = facts?.encoded ?? []
        let outcome: PublishOutcome
        do throws(CacheError) {
            outcome = try await inSpan("publish") { _ async throws(CacheError) in
                try await cache.publish(
                    file, as: job.id, fileExtension: job.rendition.format.rawValue,
                    facts: facts, alias: job.alias(with: facts), epoch: job.epoch,
                    storing: job.storage.isAllowed)
            }
        } catch {
            throw RenditionError(error)
        }
        try admission.account(for: outcome.rendition)
        return outcome
    }
}

extension WorkerReport {
    fileprivate func attributes(of job: RenditionJob) -> SpanAttributes {
        [
            "gifreel.format": .string(job.rendition.format.rawValue),
            "gifreel.source_bytes": .int(Int64(job.source.count)), "gifreel.bytes": .int(Int64(result.bytes)),
            "gifreel.frames": .int(Int64(result.frames)), "gifreel.cpu_ms": .int(Int64(cpuMicroseconds / 1000)),
        ]
    }
}
