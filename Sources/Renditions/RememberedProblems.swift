package import Cache
internal import Fetch

/// What is wrong with sources, kept in memory for as long as ``RenditionError/lifetime`` says, so that a broken one is not asked
/// again by every visitor.
package struct RememberedProblems: Sendable {
    private let problems: NegativeCache<RenditionError>

    package init(clock: CacheClock) {
        problems = NegativeCache(clock: clock)
    }

    /// What is known to be wrong with the source, or with this rendition of it.
    func problem(with url: SourceURL, _ rendition: Rendition) -> RenditionError? {
        let found = problems.failure(for: Self.key(url, nil)) ?? problems.failure(for: Self.key(url, rendition))
        return found.map { .remembered($0.failure, remaining: $0.remaining) }
    }

    /// To be noted before the origin is asked.
    var epoch: Epoch { problems.epoch }

    /// Remembers a problem, if it is one that lasts and its source was not purged since `epoch`.
    ///
    /// - Parameter rendition: The one that cannot be made; nil where the source itself is at fault.
    func remember(_ problem: RenditionError, with url: SourceURL, _ rendition: Rendition? = nil, since epoch: Epoch) {
        guard let lifetime = problem.lifetime else { return }
        problems.remember(
            problem, for: Self.key(url, rendition), sourceURL: url.canonical, lifetime: lifetime, since: epoch)
    }

    /// Forgets what the purge covers, and what is being found out about it now.
    func purge(_ scope: PurgeScope) {
        problems.purge(scope)
    }

    /// Problems remembered, those included whose time is over.
    package var count: Int { problems.count }

    private static func key(_ url: SourceURL, _ rendition: Rendition?) -> AliasKey {
        AliasKey(sourceURL: url.canonical, rendition: rendition?.canonicalText ?? "")
    }
}
