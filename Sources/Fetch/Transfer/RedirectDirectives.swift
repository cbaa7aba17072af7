/// The directives of the redirects on the way to a source about storing it.
///
/// The source belongs to the requested URL only as long as each of them is fresh, and may be stored only if each of them may.
struct RedirectDirectives {
    private static let temporary: Set<Int> = [302, 303, 307]

    private var noStore = false
    private var noCache = false
    private var isPrivate = false
    private var forbidsStale = false
    /// Seconds: the smallest lifetime that a redirect gave; nil if none did.
    private var freshFor: Int?
    /// Whether a temporary redirect gave no lifetime. A permanent one without a lifetime imposes none (RFC 9110 §15.4).
    private var lacksLifetime = false

    /// Adds a response that is a redirect.
    mutating func add(_ head: ResponseHead) {
        let directives = head.cacheDirectives
        noStore = noStore || directives.noStore
        noCache = noCache || directives.noCache
        isPrivate = isPrivate || directives.isPrivate
        forbidsStale = forbidsStale || directives.forbidsStale
        freshFor = [freshFor, directives.freshFor].compactMap { $0 }.min()
        if directives.freshFor == nil && Self.temporary.contains(head.status) { lacksLifetime = true }
    }

    /// The directives for the source: these, combined with the directives of the response after the redirects.
    func applied(to last: CacheDirectives) -> CacheDirectives {
        var result = last
        result.noStore = noStore || last.noStore
        result.noCache = noCache || last.noCache
        result.isPrivate = isPrivate || last.isPrivate
        result.forbidsStale = forbidsStale || last.forbidsStale
        result.freshFor = [freshFor, last.freshFor].compactMap { $0 }.min()
        result.isLimitedByDefault = lacksLifetime || last.freshFor == nil
        return result
    }
}
