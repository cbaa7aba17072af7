package import Cache
internal import Fetch
package import SystemIO

/// A GIF to make a rendition of, wherever it came from.
package struct Source: Sendable {
    /// The whole file, which nobody changes.
    package var bytes: SharedDescriptor
    package var count: Int
    package var digest: SourceDigest
    /// Where it came from; nil for an upload.
    var origin: Origin?

    /// An uploaded GIF.
    package init(bytes: SharedDescriptor, count: Int, digest: SourceDigest) {
        self.init(bytes: bytes, count: count, digest: digest, origin: nil)
    }

    init(bytes: SharedDescriptor, count: Int, digest: SourceDigest, origin: Origin?) {
        self.bytes = bytes
        self.count = count
        self.digest = digest
        self.origin = origin
    }

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
