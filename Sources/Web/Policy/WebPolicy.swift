package import Fetch
package import HTTP

/// The settings of the HTTP interface. A reload replaces the value as a whole.
package struct WebPolicy: Sendable {
    /// The version of the program, for the home page.
    package var version: String
    /// Origins by the name of their mount.
    package var mounts: [String: Mount] = [:]
    /// The keys that sign requests; empty turns signing off.
    package var signingKeys = SigningKeys()
    /// Whether a request without a signature is refused.
    package var requiresSignature = false
    /// Misses per client; nil for no limit.
    package var rateLimit: RateLimit?
    /// The sources that may be asked for, as far as their URLs tell. Default: all with public addresses and the usual ports.
    package var sources = FetchConfiguration().sourcePolicy
    /// This service's name in `CDN-Loop`.
    package var loopName = "gifreel"
    /// The token of admin requests; nil turns them off.
    package var adminToken: String?
    /// Clients that may read `/metrics` without the admin token.
    package var metricsReaders = ClientList()
    /// Seconds of `max-age` in `Cache-Control`.
    package var maxAge = 86_400
    /// Seconds of `stale-while-revalidate` in `Cache-Control`.
    package var staleFor: Int64 = 7 * 86_400
    /// `Access-Control-Allow-Origin`; nil sends none.
    package var allowOrigin: String? = "*"
    /// The address under which clients reach the server, without a slash at its end; nil takes that of the request.
    package var publicURL: String?
    /// Whether `/` serves the home page.
    package var hasHomePage = true
    /// The largest GIF, in bytes.
    package var maxUploadBytes = 20 << 20

    package init(version: String) {
        self.version = version
    }
}

/// The settings that the fields of a cached rendition's responses depend on. Responses that were prepared for another value
/// must not be sent.
package struct HeadPolicy: Equatable, Sendable {
    /// Seconds of `max-age`.
    package let maxAge: Int
    /// Seconds of `stale-while-revalidate`.
    package let staleFor: Int64
    /// `Access-Control-Allow-Origin`, or nil.
    package let allowOrigin: String?
}

extension WebPolicy {
    /// The part of the policy that prepared responses depend on.
    package var headPolicy: HeadPolicy { HeadPolicy(maxAge: maxAge, staleFor: staleFor, allowOrigin: allowOrigin) }
}
