internal import Cache
internal import Fetch
internal import SystemIO

/// A source that was fetched, shared by all that is being made of it. Immutable.
final class FetchedGIF: Sendable {
    let source: Source
    let url: SourceURL
    /// Noted before the origin was asked.
    let epoch: Epoch
    let keeping: OriginRules.Keeping
    let time: Duration

    init(_ fetched: FetchedSource, digest: SourceDigest, of url: SourceURL, epoch: Epoch, at time: Int64, _ rules: OriginRules)
    {
        let validators = Validators(etag: fetched.validators.etag, lastModified: fetched.validators.lastModified)
        source = Source(
            bytes: fetched.bytes, count: fetched.count, digest: digest,
            origin: Source.Origin(url: url, validators: validators, fetchedAt: time))
        self.url = url
        self.epoch = epoch
        keeping = rules.keeping(fetched.cacheDirectives, of: url)
        self.time = fetched.duration
    }
}
