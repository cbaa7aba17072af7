/// What the redirects on the way to a source say about storing it.
///
/// The source belongs to the requested URL only as long as each of them is fresh, and may be stored only if each of them may.
struct RedirectDirectives {
    private static let temporary: Set<Int> = [302, 303, 307]

    private var noStore = false
    private var noCache = false
    private var isPrivate = false
    /// Seconds: the smallest lifetime that a redirect gave; nil if none did.
    private var freshFor: Int?
    /// Whether a temporary redirect gave no lifetime. A permanent one without a lifetime imposes none.
    private var lacksLifetime = false

    /// Adds the redirect that a response is.
    mutating func add(_ head: ResponseHead) {
        let directives = head.cacheDirectives
        noStore = noStore || directives.noStore
        noCache = noCache || directives.noCache
        isPrivate = isPrivate || directives.isPrivate
        freshFor = [freshFor, directives.freshFor].compactMap { $0 }.min()
        if directives.freshFor == nil && Self.temporary.contains(head.status) { lacksLifetime = true }
    }

    /// The directives for the source.
    ///
    /// - Parameters:
    ///   - last: Those of the response after the redirects.
    ///   - defaultLifetime: Seconds for which a response without a lifetime is fresh.
    func applied(to last: CacheDirectives, defaultLifetime: Int) -> CacheDirectives {
        var result = last
        result.noStore = noStore || last.noStore
        result.noCache = noCache || last.noCache
        result.isPrivate = isPrivate || last.isPrivate
        let shortest = [freshFor, last.freshFor].compactMap { $0 }.min()
        if lacksLifetime || last.freshFor == nil {
            // No lifetime stands for the default one.
            result.freshFor = shortest.flatMap { $0 < defaultLifetime ? $0 : nil }
        } else {
            result.freshFor = shortest
        }
        return result
    }
}
