internal import Fetch
package import Store
internal import Synchronization
internal import SystemIO

/// A failure after which no new attempt is made for a while.
package struct RememberedFailure: Sendable {
    /// The rendition; nil for a failure of the whole source.
    package let key: AliasKey?
    package let error: RenditionError
    /// Seconds since it occurred.
    package let age: Int64
    /// Seconds until the next attempt is allowed, at least 1.
    package let remaining: Int64
}

/// Remembers failures of sources and renditions in memory for ``RenditionError/lifetime``, so that not every request repeats a
/// fetch or a conversion that fails.
///
/// Any thread.
struct FailureMemory: Sendable {
    private let failures: NegativeCache<RenditionError>
    private let clock: TimeSource

    /// - Parameter cache: Provides the epochs of purges.
    init(_ cache: Cache, clock: TimeSource) {
        self.clock = clock
        failures = NegativeCache(clock: clock, purges: cache.purges)
    }

    /// Checks for failures of the source, and of the rendition with that key.
    ///
    /// - Throws: ``RenditionError/remembered(_:remaining:)``.
    func check(_ key: AliasKey, of source: SourceURL) throws(RenditionError) {
        if let failure = failure(of: key, of: source) { throw failure }
    }

    /// The remembered failure of the source or of the rendition with that key, or nil.
    func failure(of key: AliasKey, of source: SourceURL) -> RenditionError? {
        failure(of: Self.key(source)) ?? failure(of: key)
    }

    /// The remembered failure of the rendition with that key alone, or nil.
    func failure(of key: AliasKey) -> RenditionError? {
        failures.failure(for: key).map { .remembered($0.failure, remaining: $0.remaining) }
    }

    /// Remembers the failure of a source, for all its renditions, unless the error has no lifetime or the source was purged
    /// since `epoch`, which was noted before the work began.
    func remember(_ error: RenditionError, of source: SourceURL, since epoch: Epoch) {
        remember(error, of: Self.key(source), of: source, since: epoch)
    }

    /// Remembers the failure of the rendition with that key, as above.
    func remember(_ error: RenditionError, of key: AliasKey, of source: SourceURL, since epoch: Epoch) {
        guard let lifetime = error.lifetime else { return }
        failures.remember(error, for: key, sourceURL: source.canonical, lifetime: lifetime, since: epoch)
    }

    /// Remembers a failure that another node has found, for the time that is left of its lifetime.
    ///
    /// - Parameters:
    ///   - key: The rendition; nil for a failure of the whole source.
    ///   - sourceURL: The source's canonical URL.
    func remember(_ failure: SharedFailure, of key: AliasKey?, ofSourceAt sourceURL: String, since epoch: Epoch) {
        failures.remember(
            failure.error, for: key ?? Self.key(sourceURL), sourceURL: sourceURL,
            lifetime: .shared(seconds: failure.remaining(at: clock.unixSeconds)), since: epoch)
    }

    /// The remembered failures of a source and of its renditions, the latest first. Scans all failures.
    func list(of source: SourceURL) -> [RememberedFailure] {
        let whole = Self.key(source)
        return failures.list(of: source.canonical).map { key, found in
            RememberedFailure(
                key: key == whole ? nil : key, error: found.failure, age: found.age, remaining: found.remaining)
        }.sorted { $0.age < $1.age }
    }

    /// Forgets the failures that a purge covers, which the cache has carried out.
    func forget(_ scope: PurgeScope) {
        failures.remove(scope)
    }

    /// Forgets the failures by rules and limits that a reload may have replaced.
    func forgetRefusals() {
        failures.removeAll(where: \.isOfSettings)
    }

    /// The number of remembered failures, including expired ones that have not been removed yet.
    var count: Int { failures.count }

    /// The key of failures that concern every rendition of a source. No rendition has an empty text.
    private static func key(_ source: SourceURL) -> AliasKey { key(source.canonical) }

    private static func key(_ sourceURL: String) -> AliasKey { AliasKey(sourceURL: sourceURL, rendition: "") }
}

/// The sources for which origins answered 404 although renditions are stored, with the time of the first 404.
///
/// A 404 may be a mistake that is corrected soon, such as a deployment under way. Stale renditions are served for a while, so
/// that a brief 404 does not destroy them. Any thread; lives as long as the process.
final class MissingSources: Sendable {
    /// The number of sources at which the half that has been missing longest is forgotten. Their grace then begins anew.
    private static let limit = 10_000

    /// The monotonic time of the first 404, by canonical URL. Another task may have noted it after this task read the clock, so
    /// a difference may be negative.
    private let since = Mutex<[String: Duration]>([:])
    private let clock: TimeSource

    init(clock: TimeSource) {
        self.clock = clock
    }

    /// Records that an origin does not have a source.
    ///
    /// - Returns: Whether stale renditions may still be served.
    func note(_ source: SourceURL, grace: Duration) -> Bool {
        let now = clock.now
        let first = since.withLock { since in
            if let first = since[source.canonical] { return first }
            if since.count >= Self.limit {
                let times = since.values.sorted()
                since = since.filter { $0.value > times[times.count / 2] }
            }
            since[source.canonical] = now
            return now
        }
        return now - first < grace
    }

    /// Records that an origin has a source.
    func remove(_ source: SourceURL) {
        since.withLock { since in
            if !since.isEmpty { since[source.canonical] = nil }
        }
    }

    /// Forgets the sources that a purge covers.
    func forget(_ scope: PurgeScope) {
        since.withLock { since in
            if !since.isEmpty { since = since.filter { !scope.covers($0.key) } }
        }
    }
}
