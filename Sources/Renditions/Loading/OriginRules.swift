/// The extent to which `Cache-Control` and `Expires` of origins are obeyed (RFC 9111 section 5.2.2).
package struct OriginRules: Sendable, Equatable {
    /// If false, every source is stored for as long as the configuration says.
    package var obeyOrigin = true
    /// The lower bound in seconds of a lifetime from an origin.
    package var minFreshFor: Int64 = 60
    /// The upper bound in seconds of a lifetime from an origin.
    package var maxFreshFor: Int64 = 30 * 86_400
    /// Seconds for which stale renditions are served after the first 404 of an origin.
    package var goneGrace: Int64 = 600
    /// Seconds for which a source without a lifetime is fresh: ``CacheConfiguration/freshFor``.
    package var defaultLifetime: Int64 = 86_400
    /// The default lifetimes of mounts in seconds, by prefix of the canonical URL. The origin's lifetime takes precedence.
    package var freshFor: [String: Int64] = [:]

    package init() {}
}
