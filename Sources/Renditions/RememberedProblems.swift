internal import Cache
internal import Fetch

/// What is wrong with sources, kept in memory for as long as ``Problem/lifetime`` says, so that a broken one is not asked
/// again by every visitor.
struct RememberedProblems: Sendable {
    private let problems: NegativeCache<Problem>

    init(clock: CacheClock) {
        problems = NegativeCache(clock: clock)
    }

    /// What is known to be wrong with the source, or with this rendition of it.
    func problem(with url: SourceURL, _ rendition: Rendition) -> Problem? {
        let found = problems.failure(for: Self.key(url, nil)) ?? problems.failure(for: Self.key(url, rendition))
        guard let found else { return nil }
        var problem = found.failure
        problem.cacheStatus = "gifreel; hit; detail=negative"
        if problem.status >= 500 { problem.retryAfter = Int(found.remaining) }
        return problem
    }

    /// To be noted before the origin is asked.
    var epoch: Epoch { problems.epoch }

    /// Remembers a problem, if it is one that lasts and its source was not purged since `epoch`.
    ///
    /// - Parameter rendition: The one that cannot be made; nil where the source itself is at fault.
    func remember(_ problem: Problem, with url: SourceURL, _ rendition: Rendition? = nil, since epoch: Epoch) {
        guard let lifetime = problem.lifetime else { return }
        problems.remember(
            problem, for: Self.key(url, rendition), sourceURL: url.canonical, lifetime: lifetime, since: epoch)
    }

    /// Forgets what the purge covers, and what is being found out about it now.
    func purge(_ scope: PurgeScope) {
        problems.purge(scope)
    }

    /// Problems remembered, those included whose time is over.
    var count: Int { problems.count }

    private static func key(_ url: SourceURL, _ rendition: Rendition?) -> AliasKey {
        AliasKey(sourceURL: url.canonical, rendition: rendition?.canonicalText ?? "")
    }
}
