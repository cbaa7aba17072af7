internal import Cache
internal import Media
internal import Sandbox

/// The last steps of a miss, once the source is in memory: reuse (from the local cache or the shared tier), convert, publish.
///
/// Any thread; calls suspend and never block.
struct RenditionProducer: Sendable {
    let cache: any RenditionCache
    let sharing: SharedRenditions?
    let convert: RenditionPipeline.Convert
    let log: ProductionLog

    /// Returns the rendition if it is stored already, else converts the source and publishes the file.
    func produce(_ production: Production, _ flight: Flight) async throws(RenditionError) -> RenditionResult {
        if let result = await reuse(production) { return result }
        if let result = await sharing?.load(production) { return result }
        if production.rendition.format == .gif { return try await publishOriginal(production) }
        let conversion = try await convert(production.source, production.rendition, flight)
        var finished = production.converted(conversion.report)
        if let last = finished.rendition.pastEnd, let frame = finished.rendition.options.frame.number,
            conversion.report.result.frames <= frame
        {
            finished = finished.pastEnd(as: last, lastFrame: conversion.report.result.frames - 1)
            if let result = await reuse(finished) { return result }
        }
        let outcome = try await publish(
            conversion.file, finished,
            facts: RenditionFacts(
                conversion.report.result, codecs: conversion.report.codecs, sourceBytes: production.source.count))
        log.produced(finished, conversion.report, outcome)
        return finished.result(outcome)
    }

    /// Returns the object if it is stored, produced earlier from the same bytes for another URL, and links the alias to it.
    private func reuse(_ production: Production) async -> RenditionResult? {
        let outcome: PublishOutcome?
        if let alias = production.alias {
            outcome = await cache.link(alias, to: production.id, epoch: production.epoch)
        } else if production.source.origin == nil {
            outcome = await cache.uploadedObject(production.id).map { .existing($0) }
        } else {
            outcome = await cache.object(production.id, isFirstLook: false).map { .existing($0) }
        }
        return outcome.map(production.result)
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

    private func publish(
        _ file: StagedFile, _ production: Production, facts: RenditionFacts?
    ) async throws(RenditionError) -> PublishOutcome {
        do throws(CacheError) {
            return try await cache.publish(
                file, as: production.id, fileExtension: production.rendition.format.rawValue, facts: facts?.encoded ?? [],
                alias: production.alias, epoch: production.epoch, storing: production.storage.isAllowed)
        } catch {
            throw RenditionError(error)
        }
    }
}
