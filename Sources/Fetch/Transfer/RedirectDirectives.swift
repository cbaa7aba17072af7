/// The directives of the redirects on the way to a source about storing it.
///
/// The source belongs to the requested URL only as long as each of them is fresh, and may be stored only if each of them may.
struct RedirectDirectives {
    private static let temporary: Set<Int> = [302, 303, 307]

    /// The strictest of each directive.
    private var strictest = CacheDirectives()
    /// Whether a temporary redirect gave no lifetime. A permanent one without a lifetime imposes none (RFC 9110 §15.4).
    private var lacksLifetime = false

    /// Adds a response that is a redirect.
    mutating func add(_ head: ResponseHead) {
        let directives = head.cacheDirectives
        strictest.restrict(by: directives)
        if directives.freshFor == nil && Self.temporary.contains(head.status) { lacksLifetime = true }
    }

    /// The directives for the source: these, combined with the directives of the response after the redirects.
    func applied(to last: CacheDirectives) -> CacheDirectives {
        var result = last
        result.restrict(by: strictest)
        result.isLimitedByDefault = lacksLifetime || last.freshFor == nil
        return result
    }
}
