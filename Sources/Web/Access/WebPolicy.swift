package import Fetch
package import HTTP
package import Renditions
package import Store

/// The settings of the HTTP interface. A reload replaces the value as a whole.
package struct WebPolicy: Sendable {
    /// The version of the program, which pages show.
    package var version: String
    /// Origins by the name of their mount.
    package var mounts: [String: Mount] = [:]
    /// The keys that sign requests; empty turns signing off.
    package var signingKeys = SigningKeys()
    /// Whether a request without a signature is refused.
    package var requiresSignature = false
    /// The presets: named sets of options.
    package var presets = RenditionPresets()
    /// The options of requests without a signature.
    package var options = OptionPolicy.any
    /// Misses per client; nil for no limit.
    package var rateLimit: RateLimit?
    /// Uploads per client; nil for no limit.
    package var uploadLimit: RateLimit?
    /// Bytes of responses per client; nil for no limit.
    package var byteLimit: RateLimit?
    /// The rules for sources, which include those of ``mounts``.
    package var sources: SourceRules
    /// This service's name in `CDN-Loop` (RFC 8586). Fetches carry it: a request with it was caused by a fetch of this service.
    package var loopName: String
    /// The token of admin requests; nil disables the admin interface.
    package var adminToken: String?
    /// A second token that is also valid.
    package var previousAdminToken: String?
    /// Clients that may read `/metrics` without the admin token.
    package var metricsReaders = ClientList()
    /// The host names by which these clients may address this server, besides local names.
    package var metricsHosts: [SourcePattern] = []
    /// The settings that determine the fields of responses with cached renditions.
    package var head: HeadPolicy
    /// The address at which clients reach the server, without a trailing slash; nil uses the request's address.
    package var publicURL: String?
    /// The description of the service in link previews of player pages.
    package var preview = LinkPreview()
    /// Whether `/` serves the home page.
    package var hasHomePage = false
    /// The number of responses with a substitute after which an AV1 rendition is produced in the background; nil produces none
    /// there. Applies to renditions that are not requested by name: the videos of player pages and the image sequences of
    /// negotiation.
    package var av1After: Int?
    /// The size limit of an uploaded GIF, in bytes.
    package var maxUploadBytes: Int

    /// A policy without mounts, keys and limits.
    ///
    /// - Parameters:
    ///   - fetch: The rules and the size limit of fetched sources, which also apply to uploads and to URLs in requests.
    ///   - cache: How long stale renditions are served.
    package init(version: String, fetch: FetchConfiguration, cache: CacheConfiguration, maxAge: Int) {
        self.version = version
        head = HeadPolicy(maxAge: maxAge, staleFor: cache.staleFor)
        sources = fetch.rules
        loopName = fetch.loopName
        maxUploadBytes = fetch.maxBytes
    }
}

/// The description of the service in link previews of player pages.
package struct LinkPreview: Sendable, Equatable {
    /// The name of the site; nil for none.
    package var siteName: String?
    /// The text below a title; nil for none.
    package var description: String?
    /// The account on X, such as `@example`; nil for none.
    package var twitterSite: String?
}

/// The settings that the fields of a cached rendition's responses depend on. A response that was prepared for another value
/// must not be sent.
package struct HeadPolicy: Equatable, Sendable {
    /// Seconds of `max-age` in `Cache-Control`.
    package var maxAge: Int
    /// Seconds of `max-age` in `CDN-Cache-Control`; nil sends no fields for CDNs.
    package var cdnMaxAge: Int?
    /// Seconds of `stale-while-revalidate` and `stale-if-error` in `Cache-Control`.
    package var staleFor: Int64
    /// `Access-Control-Allow-Origin`; nil sends none.
    package var allowOrigin: String?
}
