internal import Synchronization
package import SystemIO

/// Failures that are remembered for a while, so that a failing source is not requested again for every client.
///
/// In memory, bounded, and purgeable. Any thread. A call holds the lock for one dictionary access, or, to purge or list, for a
/// scan.
package final class NegativeCache<Failure: Sendable>: Sendable {
    private struct Entry: Sendable {
        let failure: Failure
        let sourceURL: String
        /// By the monotonic clock.
        let since: UInt64
        let until: UInt64

        /// Nil if the entry has expired.
        func found(at now: UInt64) -> Found? {
            guard until > now else { return nil }
            return Found(
                failure: failure, age: Int64((now - min(since, now)) / 1_000_000_000),
                remaining: Int64((until - now + 999_999_999) / 1_000_000_000))
        }
    }

    /// A remembered failure.
    package struct Found: Sendable {
        package let failure: Failure
        /// Seconds since it was remembered.
        package let age: Int64
        /// Seconds until the next attempt is allowed, at least one; for `Retry-After`.
        package let remaining: Int64
    }

    private let entries: Mutex<SieveTable<AliasKey, Entry>>
    private let purges: PurgeIndex
    private let clock: TimeSource

    /// - Parameters:
    ///   - limit: The largest number of entries. Beyond it, unused entries are dropped first.
    ///   - purges: Every purge is followed by ``remove(_:)``.
    package init(limit: Int = 10_000, clock: TimeSource = .system, purges: PurgeIndex) {
        self.purges = purges
        entries = Mutex(SieveTable(limit: limit))
        self.clock = clock
    }

    /// The failure remembered under `key`; nil if there is none or it has expired.
    package func failure(for key: AliasKey) -> Found? {
        let now = clock.monotonicNanoseconds()
        return entries.withLock { entries in
            guard let entry = entries.use(key) else { return nil }
            guard let found = entry.found(at: now) else {
                _ = entries.remove(key)
                return nil
            }
            return found
        }
    }

    /// Returns the failures of a source with their keys, in no particular order. Scans all entries and marks none as used.
    package func list(of sourceURL: String) -> [(key: AliasKey, found: Found)] {
        let now = clock.monotonicNanoseconds()
        return entries.withLock { entries in
            entries.filter { _, entry in entry.sourceURL == sourceURL }
                .compactMap { key, entry in entry.found(at: now).map { (key, $0) } }
        }
    }

    /// Remembers a failure, unless its source was purged since `epoch`.
    ///
    /// - Parameters:
    ///   - key: The key of the rendition, or of anything else that failed as a whole.
    ///   - sourceURL: The source's canonical URL, for purges.
    ///   - epoch: The epoch noted before the source was requested.
    package func remember(
        _ failure: Failure, for key: AliasKey, sourceURL: String, lifetime: NegativeLifetime, since epoch: Epoch
    ) {
        // Using the key as jitter spreads the retries of different sources and keeps repeated runs deterministic.
        let now = clock.monotonicNanoseconds()
        let until = now + lifetime.nanoseconds(jitter: key.digest.prefix)
        entries.withLock { entries in
            guard !purges.overtook(epoch, sourceURL: sourceURL) else { return }
            _ = entries.insert(Entry(failure: failure, sourceURL: sourceURL, since: now, until: until), for: key)
        }
    }

    /// Forgets the failures that a purge covers. Failures of requests in progress are not remembered.
    ///
    /// - Returns: The number of failures forgotten.
    @discardableResult
    package func remove(_ scope: PurgeScope) -> Int {
        entries.withLock { $0.removeAll { _, entry in scope.covers(entry.sourceURL) }.count }
    }

    /// Forgets the failures for which `condition` is true.
    package func removeAll(where condition: (Failure) -> Bool) {
        entries.withLock { _ = $0.removeAll { _, entry in condition(entry.failure) } }
    }

    /// The number of entries, including expired ones.
    package var count: Int { entries.withLock(\.count) }
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
