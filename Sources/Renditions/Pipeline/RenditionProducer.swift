internal import Media
internal import Sandbox
internal import Store
internal import Tracing

/// The last steps of a miss, once the source is in memory: reuse (from the local cache or the shared tier), convert, publish.
///
/// Any thread; calls suspend and never block.
struct RenditionProducer: Sendable {
    let cache: Cache
    let admission: Admission
    let sharing: SharedRenditions?
    let convert: RenditionPipeline.Convert
    /// What ``check(_:_:storing:)`` refuses; nil without a list.
    let blocks: BlockList?
    /// Whether ``check(_:_:storing:)`` counts flashes.
    let flashes: FlashLimit
    let log: ProductionLog

    /// Returns the rendition if it is stored already, else converts the source and publishes the file.
    func produce(_ production: Production, _ flight: Flight) async throws(RenditionError) -> RenditionResult {
        if let result = try await reuse(production) { return result }
        if let result = await sharing?.load(production) { return result }
        if production.rendition.format == .original { return try await publishOriginal(production) }
        let conversion = try await traced(production, flight)
        var finished = production.converted(conversion.report)
        if let last = finished.rendition.pastEnd, let frame = finished.rendition.options.frame.number,
            conversion.report.result.frames <= frame
        {
            finished = finished.pastEnd(as: last, lastFrame: conversion.report.result.frames - 1)
            // The conversion is done, so a cache that has too much work to look it up is no reason to fail.
            if let result = try? await reuse(finished) { return result }
        }
        let outcome = try await publish(
            conversion.file, finished,
            facts: RenditionFacts(
                conversion.report.result, of: finished.rendition.format, codecs: conversion.report.codecs,
                sourceBytes: production.source.count))
        log.produced(finished, conversion.report, outcome)
        return finished.result(outcome)
    }

    /// Converts the source, and records the time in the queue and the conversion in the request's trace.
    private func traced(
        _ production: Production, _ flight: Flight
    ) async throws(RenditionError) -> Converter.Conversion {
        let submitted = DefaultTracerClock.now
        do throws(RenditionError) {
            let conversion = try await convert(production.source, production.rendition, flight)
            let report = conversion.report
            recordSpan("queue", from: submitted, for: report.queued)
            recordSpan("convert", from: submitted + report.queued, for: report.ran, report.attributes(of: production))
            return conversion
        } catch {
            // Without a report, the time in the queue is a part of the conversion.
            recordSpan(flight.turn.hasBegun ? "convert" : "queue", from: submitted, error: error)
            throw error
        }
    }

    /// Returns the object if it is stored, produced earlier from the same bytes for another URL, and links the alias to it.
    ///
    /// - Throws: ``RenditionError/overloaded(cause:)`` if the cache has too much work to look it up.
    func reuse(_ production: Production) async throws(RenditionError) -> RenditionResult? {
        if let alias = production.alias(with: []) { return await link(alias, production).map(production.result) }
        do throws(CacheError) {
            let stored =
                if production.source.origin == nil {
                    try await cache.uploadedObject(production.id)
                } else {
                    try await cache.look(for: production.id, isFirstLook: false)
                }
            return stored.map { production.result(.existing($0)) }
        } catch {
            throw RenditionError(error)
        }
    }

    /// Links the alias to the object; nil if there is no such object.
    private func link(_ alias: AliasRecord, _ production: Production) async -> PublishOutcome? {
        let linked = await cache.link(alias, to: production.id, epoch: production.epoch)
        // Only the object shows whether its source breaks off.
        guard let linked, let known = production.alias(with: linked.rendition.facts), known != alias else { return linked }
        return await cache.link(known, to: production.id, epoch: production.epoch)
    }

    /// Publishes the GIF itself, for clients that do not accept the video. The fetcher has checked its signature, and no
    /// worker decodes it.
    private func publishOriginal(_ production: Production) async throws(RenditionError) -> RenditionResult {
        let file: StagedFile
        do throws(CacheError) {
            file = try await cache.stage(copyOf: production.source.bytes, count: production.source.count)
        } catch {
            throw RenditionError(error)
        }
        return production.result(try await publish(file, production, facts: nil))
    }

    func publish(
        _ file: StagedFile, _ production: Production, facts: RenditionFacts?
    ) async throws(RenditionError) -> PublishOutcome {
        let facts = facts?.encoded ?? []
        let outcome: PublishOutcome
        do throws(CacheError) {
            outcome = try await inSpan("publish") { _ async throws(CacheError) in
                try await cache.publish(
                    file, as: production.id, fileExtension: production.rendition.format.rawValue,
                    facts: facts, alias: production.alias(with: facts), epoch: production.epoch,
                    storing: production.storage.isAllowed)
            }
        } catch {
            throw RenditionError(error)
        }
        try admission.account(for: outcome.rendition, in: file)
        return outcome
    }
}

extension WorkerReport {
    /// The attributes of the span of a conversion.
    fileprivate func attributes(of production: Production) -> SpanAttributes {
        [
            "gifreel.format": .string(production.rendition.format.rawValue),
            "gifreel.source_bytes": .int(Int64(production.source.count)), "gifreel.bytes": .int(Int64(result.bytes)),
            "gifreel.frames": .int(Int64(result.frames)), "gifreel.cpu_ms": .int(Int64(cpuMicroseconds / 1000)),
        ]
    }
}
