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
/// Bounded. Any thread. A call holds the lock for one dictionary access, or, to forget or list, for a scan.
final class FailureMemory: Sendable {
    private struct Entry: Sendable {
        let error: RenditionError
        let sourceURL: String
        /// By the monotonic clock.
        let since: UInt64
        let until: UInt64

        /// Seconds until the next attempt is allowed, at least one; nil if the entry has expired.
        func remaining(at now: UInt64) -> Int64? {
            until > now ? Int64((until - now + 999_999_999) / 1_000_000_000) : nil
        }
    }

    private let entries: Mutex<SieveTable<AliasKey, Entry>>
    private let purges: PurgeIndex
    private let clock: TimeSource

    /// - Parameters:
    ///   - purges: Every purge is followed by ``forget(_:)``.
    ///   - limit: The largest number of failures. Beyond it, unused ones are dropped first.
    init(_ purges: PurgeIndex, clock: TimeSource, limit: Int = 10_000) {
        entries = Mutex(SieveTable(limit: limit))
        self.purges = purges
        self.clock = clock
    }

    /// Checks for failures of the source, and of the rendition with that key.
    ///
    /// - Throws: ``RenditionError/remembered(_:remaining:)``.
    func check(_ key: AliasKey, of source: SourceURL) throws(RenditionError) {
        if let failure = failure(of: key, of: source) { throw failure }
    }

    /// The remembered failure of the source or of the rendition with that key, or nil.
    func failure(of key: AliasKey, of source: SourceURL) -> RenditionError? {
        failure(of: Self.key(source.canonical)) ?? failure(of: key)
    }

    /// The remembered failure of the rendition with that key alone, or nil.
    func failure(of key: AliasKey) -> RenditionError? {
        let now = clock.monotonicNanoseconds()
        return entries.withLock { entries in
            guard let entry = entries.use(key) else { return nil }
            guard let remaining = entry.remaining(at: now) else {
                _ = entries.remove(key)
                return nil
            }
            return .remembered(entry.error, remaining: remaining)
        }
    }

    /// Remembers the failure of a source, for all its renditions, unless the error has no lifetime or the source was purged
    /// since `epoch`, which was noted before the work began.
    func remember(_ error: RenditionError, of source: SourceURL, since epoch: Epoch) {
        remember(error, of: Self.key(source.canonical), of: source, since: epoch)
    }

    /// Remembers the failure of the rendition with that key, as above.
    func remember(_ error: RenditionError, of key: AliasKey, of source: SourceURL, since epoch: Epoch) {
        guard let lifetime = error.lifetime else { return }
        remember(error, of: key, ofSourceAt: source.canonical, for: lifetime, since: epoch)
    }

    /// Remembers a failure that another node has found, for the time that is left of its lifetime.
    ///
    /// - Parameters:
    ///   - key: The rendition; nil for a failure of the whole source.
    ///   - sourceURL: The source's canonical URL.
    func remember(_ failure: SharedFailure, of key: AliasKey?, ofSourceAt sourceURL: String, since epoch: Epoch) {
        let lifetime = NegativeLifetime.shared(seconds: failure.remaining(at: clock.unixSeconds))
        remember(failure.error, of: key ?? Self.key(sourceURL), ofSourceAt: sourceURL, for: lifetime, since: epoch)
    }

    private func remember(
        _ error: RenditionError, of key: AliasKey, ofSourceAt sourceURL: String, for lifetime: NegativeLifetime,
        since epoch: Epoch
    ) {
        let now = clock.monotonicNanoseconds()
        // Using the key as jitter spreads the retries of different sources and keeps repeated runs deterministic.
        let until = now + lifetime.nanoseconds(jitter: key.digest.prefix)
        entries.withLock { entries in
            guard !purges.overtook(epoch, sourceURL: sourceURL) else { return }
            _ = entries.insert(Entry(error: error, sourceURL: sourceURL, since: now, until: until), for: key)
        }
    }

    /// The remembered failures of a source and of its renditions, the latest first. Scans all failures.
    func list(of source: SourceURL) -> [RememberedFailure] {
        let (whole, now) = (Self.key(source.canonical), clock.monotonicNanoseconds())
        let found = entries.withLock { $0.filter { _, entry in entry.sourceURL == source.canonical } }
        return found.compactMap { key, entry in
            entry.remaining(at: now).map { remaining in
                RememberedFailure(
                    key: key == whole ? nil : key, error: entry.error,
                    age: Int64((now - min(entry.since, now)) / 1_000_000_000), remaining: remaining)
            }
        }.sorted { $0.age < $1.age }
    }

    /// Forgets the failures that a purge covers, which the cache has carried out. Failures of requests in progress are not
    /// remembered.
    func forget(_ scope: PurgeScope) {
        entries.withLock { _ = $0.removeAll { _, entry in scope.covers(entry.sourceURL) } }
    }

    /// Forgets the failures by rules and limits that a reload may have replaced.
    func forgetRefusals() {
        entries.withLock { _ = $0.removeAll { _, entry in entry.error.isOfSettings } }
    }

    /// The number of remembered failures, including expired ones that have not been removed yet.
    var count: Int { entries.withLock(\.count) }

    /// The key of failures that concern every rendition of a source. No rendition has an empty text.
    private static func key(_ sourceURL: String) -> AliasKey { AliasKey(sourceURL: sourceURL, rendition: "") }
}

/// How long a failure is remembered.
package enum NegativeLifetime: Sendable, Equatable {
    /// The source does not exist (404, 410): one minute.
    case missing
    /// The source is no GIF or cannot be converted (415, 422): ten minutes, since an attempt is expensive.
    case unusable
    /// The origin failed or was too slow: five seconds plus up to 2.5 seconds of jitter, so that not all sources are requested
    /// again at the same time.
    case transient
    /// The origin asked for a pause (`Retry-After`, RFC 9110 section 10.2.3): at least one second, at most five minutes.
    case retryAfter(seconds: Int64)
    /// Another node found the failure and remembers it for this long: at least one second, at most ten minutes.
    case shared(seconds: Int64)

    /// The lifetime.
    ///
    /// - Parameter jitter: Determines the part of a transient lifetime beyond five seconds.
    package func nanoseconds(jitter: UInt64 = .random(in: .min ... .max)) -> UInt64 {
        switch self {
        case .missing: 60 * Self.second
        case .unusable: 600 * Self.second
        case .transient: 5 * Self.second + jitter % (5 * Self.second / 2 + 1)
        case .retryAfter(let seconds): UInt64(min(max(seconds, 1), 300)) * Self.second
        case .shared(let seconds): UInt64(min(max(seconds, 1), 600)) * Self.second
        }
    }

    private static let second: UInt64 = 1_000_000_000
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

    /// Records that an origin does not have a source. Returns whether stale renditions may still be served.
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

    func forget(_ scope: PurgeScope) {
        since.withLock { since in
            if !since.isEmpty { since = since.filter { !scope.covers($0.key) } }
        }
    }
}
