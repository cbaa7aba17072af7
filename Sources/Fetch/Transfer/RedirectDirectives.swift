/// The caching directives of the redirects that led to a source.
///
/// The source belongs to the requested URL only while every redirect is fresh, and may be stored only if every redirect may be.
struct RedirectDirectives {
    private static let temporary: Set<Int> = [302, 303, 307]

    /// The strictest value of each directive.
    private var strictest = CacheDirectives()
    /// Whether a temporary redirect gave no lifetime. A permanent redirect without a lifetime imposes none (RFC 9110 §15.4).
    private var lacksLifetime = false

    mutating func add(_ head: ResponseHead) {
        let directives = head.cacheDirectives
        strictest.restrict(by: directives)
        if directives.freshFor == nil && Self.temporary.contains(head.status) { lacksLifetime = true }
    }

    /// Returns the directives for the source: those of the redirects combined with those of the final response.
    func applied(to last: CacheDirectives) -> CacheDirectives {
        var result = last
        result.restrict(by: strictest)
        result.isLimitedByDefault = lacksLifetime || last.freshFor == nil
        return result
    }
}
