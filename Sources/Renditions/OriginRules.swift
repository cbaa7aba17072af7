package import Fetch

/// How far an origin's word on keeping its answers goes (RFC 9111 section 5.2.2).
package struct OriginRules: Sendable, Equatable {
    /// False keeps everything for as long as the configuration says.
    package var isObeyed: Bool
    /// Seconds: what an origin says is fresh for less counts as fresh for this long.
    package var shortest: Int64
    /// Seconds: what an origin says is fresh for more counts as fresh for this long.
    package var longest: Int64
    /// Seconds by the beginning of a source's canonical URL, for sources of mounts with a time of their own, where the
    /// origin does not say.
    package var freshFor: [String: Int64] = [:]

    /// A minute: each renewal is a request. Thirty days: the origin may be wrong.
    package init(isObeyed: Bool = true, shortest: Int64 = 60, longest: Int64 = 30 * 86_400) {
        self.isObeyed = isObeyed
        self.shortest = shortest
        self.longest = longest
    }

    /// What the cache may do with an answer.
    struct Keeping: Sendable, Equatable {
        /// Whether it may be stored. What may not is still answered with, to all who asked meanwhile: the request for it
        /// carried nothing of theirs.
        var isAllowed = true
        /// Seconds it is fresh; nil where the origin does not say.
        var freshFor: Int64?
    }

    /// - Parameter url: The source's, which may have a time of its own.
    func keeping(_ directives: CacheDirectives, of url: SourceURL? = nil) -> Keeping {
        // The longest beginning, where one mount lies within another.
        let own = freshFor.filter { url?.canonical.hasPrefix($0.key) == true }
            .max { $0.key.utf8.count < $1.key.utf8.count }?.value
        guard isObeyed else { return Keeping(freshFor: own) }
        // This is a cache for many, which `private` is not meant for.
        if directives.noStore || directives.isPrivate { return Keeping(isAllowed: false) }
        let said = directives.noCache ? 0 : directives.freshFor
        return Keeping(freshFor: said.map { min(max(Int64($0), shortest), longest) } ?? own)
    }
}
