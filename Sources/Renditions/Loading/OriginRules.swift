/// The extent to which `Cache-Control` and `Expires` of origins are obeyed (RFC 9111 section 5.2.2).
package struct OriginRules: Sendable, Equatable {
    /// If false, every source is stored for as long as the configuration says.
    package var obeyOrigin = true
    /// Seconds: the lower bound of a lifetime that an origin gives.
    package var minFreshFor: Int64 = 60
    /// Seconds: the upper bound of a lifetime that an origin gives.
    package var maxFreshFor: Int64 = 30 * 86_400
    /// Seconds for which stale renditions are served after the first 404 of an origin.
    package var goneGrace: Int64 = 600
    /// Seconds for which a source without a lifetime is fresh: ``CacheConfiguration/freshFor``.
    package var defaultLifetime: Int64 = 86_400
    /// The same by the prefix of the canonical URL, for mounts with a lifetime of their own. The origin's
    /// lifetime takes precedence.
    package var freshFor: [String: Int64] = [:]

    package init() {}
}
