internal import Cache

extension RenditionMaker {
    /// Stores the GIF as it is, for clients that did not say that they can play the video. No worker looks at it: that it
    /// begins as a GIF was seen while it was fetched, and it goes to a client that wants a GIF.
    func keep(
        _ source: Source, as id: ObjectID, _ alias: AliasRecord?, epoch: Epoch, _ keeping: OriginRules.Keeping,
        _ times: StageTimes
    ) async -> Result<Made, RenditionError> {
        do throws(CacheError) {
            let file = try await cache.stage(copyOf: source.bytes, count: source.count)
            let outcome = try await cache.publish(
                file, as: id, fileExtension: Rendition.Format.gif.rawValue, alias: alias, epoch: epoch,
                storing: keeping.isAllowed)
            return .success(Made(rendition: outcome.rendition, provenance: Self.provenance(outcome), times: times))
        } catch {
            return .failure(RenditionError(error))
        }
    }
}
