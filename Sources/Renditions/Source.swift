internal import Cache
internal import Fetch
internal import SystemIO

/// A GIF to make a rendition of, wherever it came from.
struct Source: Sendable {
    /// The whole file, which nobody changes.
    var bytes: SharedDescriptor
    var count: Int
    var digest: SourceDigest
    /// Where it came from; nil for an upload.
    var origin: Origin?

    /// What is known of a source that was fetched.
    struct Origin: Sendable {
        var url: SourceURL
        var validators: Validators
        /// In seconds since 1970.
        var fetchedAt: Int64
    }

    /// What leads to a rendition of it; nil for an upload.
    func alias(_ rendition: Rendition, freshFor: Int64?) -> AliasRecord? {
        origin.map { origin in
            AliasRecord(
                key: AliasKey(sourceURL: origin.url.canonical, rendition: rendition.canonicalText),
                sourceURL: origin.url.canonical, validators: origin.validators, fetchedAt: origin.fetchedAt,
                freshFor: freshFor)
        }
    }
}
