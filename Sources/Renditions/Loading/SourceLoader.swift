package import Fetch
internal import Sandbox
internal import Store
internal import Synchronization
internal import SystemIO
internal import Tracing

/// Fetches sources. Renditions that are produced at the same time from one source share its fetch and its bytes.
///
/// Failures are remembered (``FailureMemory``). Any thread.
package struct SourceLoader: Sendable {
    /// Fetches a source, and makes its bytes available as they arrive.
    package typealias Fetch =
        @Sendable (SourceURL, SourceValidators, ArrivingSource) async throws(FetchError) -> FetchOutcome

    enum Outcome: Sendable {
        case loaded(LoadedSource)
        /// The origin confirmed what the validators describe. The epoch was noted before the origin was asked.
        case notModified(UnmodifiedSource, Epoch)
    }

    /// Fetches in progress, and sources in memory. Lives as long as the process.
    final class State: Sendable {
        fileprivate let fetches: SingleFlight<Key, Outcome>
        fileprivate let shared: SharedSources
        /// The jobs that wait for a fetch. It may begin within the shares of any of their clients.
        fileprivate let turns = Mutex<[SourceURL: [JobTurn]]>([:])

        /// - Parameters:
        ///   - lifetime: A backstop for one fetch, which has timeouts of its own.
        ///   - executor: Runs the fetches; nil for Swift's default.
        init(_ cache: Cache, lifetime: Duration, time: TimeSource, executor: (any TaskExecutor)?) {
            fetches = SingleFlight(queueTimeout: lifetime, lifetime: lifetime, time: time, executor: executor)
            shared = SharedSources(cache)
        }

        func setLifetime(_ lifetime: Duration) {
            fetches.setTimeouts(queue: lifetime, lifetime: lifetime)
        }

        /// Prevents later callers from joining the fetches that the purge covers.
        func close(_ scope: PurgeScope) {
            fetches.close { scope.covers($0.url.canonical) }
        }
    }

    fileprivate struct Key: Hashable {
        let url: SourceURL
        let validators: SourceValidators
    }

    let cache: Cache
    let clock: TimeSource
    let rules: OriginRules
    let state: State
    let failures: FailureMemory
    /// Whether followers get a source only once it is shown; see ``ArrivingSource/withhold()``.
    let withholds: Bool
    let fetch: Fetch

    /// Loads the source: from memory, from a fetch in progress, or by a new fetch.
    ///
    /// - Parameters:
    ///   - validators: The validators of the stored rendition; the origin may answer that nothing has changed.
    ///   - turn: Knows the clients that wait for the source.
    ///   - slot: Reserves the memory if a new fetch begins, and is held until that fetch ends.
    func load(
        _ url: SourceURL, validators: SourceValidators, _ turn: JobTurn, _ slot: AdmissionSlot
    ) async throws(RenditionError) -> Outcome {
        if let source = state.shared.whole(url) { return .loaded(source) }
        state.turns.withLock { $0[url, default: []].append(turn) }
        defer {
            state.turns.withLock { turns in
                turns[url]?.removeAll { $0 === turn }
                if turns[url]?.isEmpty == true { turns[url] = nil }
            }
        }
        var key = Key(url: url, validators: SourceValidators())
        // The outcome of an unconditional fetch suits every caller; that of a conditional one suits only equal validators.
        if !state.fetches.isJoinable(key) { key = Key(url: url, validators: validators) }
        do throws(RenditionError) {
            return try await state.fetches.value(for: key) { [key] _ async throws(RenditionError) in
                try await fetchNow(key, turn, slot)
            }.value
        } catch .cancelled {
            throw .overloaded(cause: nil)
        } catch {
            throw error
        }
    }

    /// Returns the source for a caller that follows its bytes: from memory, from a fetch in progress, or from the next fetch,
    /// which the caller ensures.
    func follow(_ url: SourceURL) -> ArrivingSource {
        state.shared.follow(url)
    }

    /// The bytes of a source that have arrived, and its size if the origin declared it; nil before the first bytes.
    func arrived(_ url: SourceURL) -> FlightProgress.Arrived? {
        state.shared.arrived(url)
    }

    /// Starts to fetch a source for its followers, unless it is in memory or being fetched.
    ///
    /// - Parameter slot: Held until the end of the fetch. If the source may be stored, the slot accounts for its size and keeps
    ///   it in memory, so that the caller's own ``load(_:validators:_:_:)`` finds it there.
    func start(_ url: SourceURL, _ turn: JobTurn, _ slot: AdmissionSlot) {
        if let source = state.shared.whole(url) { return slot.keep(source) }
        let key = Key(url: url, validators: SourceValidators())
        state.fetches.start(key, urgency: .visitor) { _ async throws(RenditionError) in
            defer { withExtendedLifetime(slot) {} }
            let outcome = try await fetchNow(key, turn, slot)
            if case .loaded(let loaded) = outcome {
                if loaded.storage.isAllowed {
                    slot.keep(loaded)
                    slot.sourceArrived(bytes: loaded.source.count)
                }
                slot.account(for: loaded.arriving)
            }
            return outcome
        }
    }

    private func fetchNow(
        _ key: Key, _ turn: JobTurn, _ slot: AdmissionSlot
    ) async throws(RenditionError) -> Outcome {
        // Noted before the origin is asked: a later purge covers the origin's answer.
        let epoch = cache.epoch
        let arriving = state.shared.open(key.url, epoch: epoch)
        if withholds { arriving.withhold() }
        arriving.setGate { [state] in
            slot.beginFetch(for: ([turn] + state.turns.withLock { $0[key.url] ?? [] }).flatMap(\.clients))
        }
        defer { arriving.setGate(nil) }
        let outcome: FetchOutcome
        do throws(FetchError) {
            outcome = try await inSpan("fetch", ofKind: .client) { span async throws(FetchError) in
                span.attributes["server.address"] = key.url.host
                let outcome = try await fetch(key.url, key.validators, arriving)
                if case .fetched(let fetched) = outcome { span.attributes["http.response.body.size"] = fetched.count }
                return outcome
            }
        } catch {
            let failure = RenditionError.fetchFailed(error)
            failures.remember(failure, of: key.url, since: epoch)
            // Only after the failure is remembered, so that a follower that retries at once gets it.
            state.shared.fail(arriving, of: key.url)
            throw failure
        }
        switch outcome {
        case .notModified(let unmodified):
            arriving.fail()
            return .notModified(unmodified, epoch)
        case .fetched(let fetched):
            let source = try loaded(fetched, of: key.url, epoch, arriving)
            state.shared.share(source)
            return .loaded(source)
        }
    }

    private func loaded(
        _ fetched: FetchedSource, of url: SourceURL, _ epoch: Epoch, _ arriving: ArrivingSource
    ) throws(RenditionError) -> LoadedSource {
        arriving.complete(fetched)
        guard let digest = SourceDigest(bytes: fetched.sha256) else { throw .overloaded(cause: "no digest") }
        return LoadedSource(fetched, digest: digest, of: url, epoch: epoch, at: clock.steadySeconds, rules, arriving)
    }

    /// Fetches a source for one caller: other requests see neither the source nor a failure.
    ///
    /// - Parameters:
    ///   - validators: The validators of the stored rendition; the origin may answer that nothing has changed.
    ///   - slot: Reserves the memory.
    ///   - acceptsImages: See ``ArrivingSource/acceptsImages``.
    func loadApart(
        _ url: SourceURL, validators: SourceValidators = SourceValidators(), _ slot: AdmissionSlot, acceptsImages: Bool = false
    ) async throws(RenditionError) -> Outcome {
        let epoch = cache.epoch
        let arriving = ArrivingSource(acceptsImages: acceptsImages)
        arriving.setGate { slot.beginFetch() }
        defer { arriving.setGate(nil) }
        let outcome = try await translating(
            awaiting: try await fetch(url, validators, arriving), to: RenditionError.fetchFailed)
        switch outcome {
        case .notModified(let unmodified): return .notModified(unmodified, epoch)
        case .fetched(let fetched): return .loaded(try loaded(fetched, of: url, epoch, arriving))
        }
    }
}
