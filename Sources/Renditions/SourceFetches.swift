package import Cache
package import Fetch
internal import Synchronization

/// Fetches sources, each once for all that is made of it at the time, and remembers those that fail.
///
/// Any thread.
package final class SourceFetches: Sendable {
    package typealias Fetch = @Sendable (SourceURL, SourceValidators) async -> Result<FetchOutcome, FetchError>

    /// What a fetch came to.
    enum Outcome: Sendable {
        case fetched(FetchedGIF)
        /// The source is as it was when the validators were given; the epoch was noted before the origin was asked.
        case notModified(UnmodifiedSource, Epoch)
        case failed(RenditionError)
    }

    struct Key: Hashable {
        let url: SourceURL
        let validators: SourceValidators
    }

    struct Loan {
        weak var gif: FetchedGIF?
    }

    private let cache: Cache
    private let clock: CacheClock
    private let rules: OriginRules
    private let state: RenditionState
    private let fetch: Fetch

    package init(
        cache: Cache, clock: CacheClock, rules: OriginRules, state: RenditionState, fetch: @escaping Fetch
    ) {
        self.cache = cache
        self.clock = clock
        self.rules = rules
        self.state = state
        self.fetch = fetch
    }

    /// The source: from memory, by the fetch that is under way, or by a new one.
    ///
    /// - Parameter validators: Of what is stored; the origin may then answer that nothing has changed.
    func fetch(_ url: SourceURL, validators: SourceValidators = SourceValidators()) async -> Outcome {
        if let gif = loan(of: url) { return .fetched(gif) }
        var key = Key(url: url, validators: SourceValidators())
        // An unconditional fetch serves everybody; a conditional one has an answer that only the same validators go with.
        if !state.fetchFlights.isOpen(key) { key = Key(url: url, validators: validators) }
        let landing = await state.fetchFlights.outcome(of: key) { [self, key] _ in await fetchNow(key) }
        switch landing {
        case .landed(let outcome, _): return outcome
        case .timedOut, .cancelled: return .failed(.overloaded(cause: nil))
        }
    }

    /// Lets nobody join the fetches that are under way and that the purge covers.
    func close(_ scope: PurgeScope) {
        state.fetchFlights.close { scope.covers($0.url.canonical) }
    }

    private func fetchNow(_ key: Key) async -> Outcome {
        // Noted before the origin is asked: a purge from here on covers what it says.
        let epoch = cache.epoch(for: key.url.canonical)
        let memory = state.failures.epoch
        switch await fetch(key.url, key.validators) {
        case .failure(let error):
            let problem = RenditionError.fetchFailed(error)
            state.failures.remember(problem, with: key.url, since: memory)
            return .failed(problem)
        case .success(.notModified(let unmodified)):
            return .notModified(unmodified, epoch)
        case .success(.fetched(let fetched)):
            guard let digest = SourceDigest(bytes: fetched.sha256) else { return .failed(.overloaded(cause: nil)) }
            let gif = FetchedGIF(fetched, digest: digest, of: key.url, epoch: epoch, at: clock.unixSeconds(), rules)
            if gif.keeping.isAllowed { lend(gif) }
            return .fetched(gif)
        }
    }

    // MARK: Lending

    private func lend(_ gif: FetchedGIF) {
        state.loans.withLock { loans in
            if loans.count >= 64 { loans = loans.filter { $0.value.gif != nil } }
            loans[gif.url] = Loan(gif: gif)
        }
    }

    private func loan(of url: SourceURL) -> FetchedGIF? {
        guard let gif = state.loans.withLock({ $0[url]?.gif }), !cache.isPurged(url.canonical, since: gif.epoch) else {
            return nil
        }
        return gif
    }
}
