internal import Synchronization

/// What is known not to work, remembered for a while so that a broken source is not asked again by every visitor.
///
/// In memory only, bounded, and purgeable like the rest. Any thread; each call holds a lock for a dictionary access, a purge
/// for a scan.
package final class NegativeCache<Failure: Sendable>: Sendable {
    private struct Entry: Sendable {
        let failure: Failure
        let sourceURL: String
        /// By the monotonic clock.
        let until: UInt64
    }

    /// An answer that is remembered.
    package struct Found: Sendable {
        package let failure: Failure
        /// Seconds until it may be tried again, at least one; for `Retry-After`.
        package let remaining: Int64
    }

    private let entries: Mutex<SieveTable<AliasKey, Entry>>
    private let purges = PurgeLog()
    private let clock: CacheClock

    /// - Parameter limit: Entries at most; beyond, those not asked for go first.
    package init(limit: Int = 10_000, clock: CacheClock = .system) {
        entries = Mutex(SieveTable(limit: limit))
        self.clock = clock
    }

    /// What is remembered under `key`.
    package func failure(for key: AliasKey) -> Found? {
        let now = clock.monotonicNanoseconds()
        return entries.withLock { entries in
            guard let entry = entries.use(key) else { return nil }
            guard entry.until > now else {
                _ = entries.remove(key)
                return nil
            }
            return Found(failure: entry.failure, remaining: Int64((entry.until - now + 999_999_999) / 1_000_000_000))
        }
    }

    /// To be noted before the source is asked, and handed to ``remember(_:for:sourceURL:lifetime:since:)``.
    package var epoch: Epoch { purges.epoch }

    /// Remembers a failure, unless its source was purged since `epoch`.
    ///
    /// - Parameters:
    ///   - key: Of the rendition, or of whatever else failed as a whole.
    ///   - sourceURL: The source's canonical URL, for purges.
    ///   - lifetime: How long; see ``NegativeLifetime``.
    ///   - epoch: As noted before the source was asked.
    package func remember(
        _ failure: Failure, for key: AliasKey, sourceURL: String, lifetime: NegativeLifetime, since epoch: Epoch
    ) {
        let until = clock.monotonicNanoseconds() + lifetime.nanoseconds()
        entries.withLock { entries in
            guard !purges.overtook(epoch, sourceURL: sourceURL) else { return }
            _ = entries.insert(Entry(failure: failure, sourceURL: sourceURL, until: until), for: key)
        }
    }

    /// Forgets what is remembered under `key`: it has worked meanwhile.
    package func forget(_ key: AliasKey) {
        entries.withLock { _ = $0.remove(key) }
    }

    /// Forgets all that `scope` covers, and what is being found out about it now.
    ///
    /// - Returns: How many entries there were.
    @discardableResult
    package func purge(_ scope: PurgeScope) -> Int {
        purges.append(scope)
        return entries.withLock { $0.removeAll { _, entry in scope.covers(entry.sourceURL) }.count }
    }

    /// Entries held, those included whose time is over.
    package var count: Int { entries.withLock(\.count) }
}
