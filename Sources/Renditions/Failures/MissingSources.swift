internal import Fetch
internal import Store
internal import Synchronization
internal import SystemIO

/// The sources that origins answered with 404 although renditions of them are stored, and since when.
///
/// A 404 may be a mistake that is corrected soon, such as a deployment under way. Stale renditions are served for a while, so that it
/// does not destroy them. Any thread; lives as long as the process.
final class MissingSources: Sendable {
    /// The number of sources beyond which those that are missing for the longest time are forgotten. Their time then begins anew.
    private static let limit = 10_000

    /// By the canonical URL; in nanoseconds by the monotonic clock.
    private let since = Mutex<[String: UInt64]>([:])
    private let clock: TimeSource

    init(clock: TimeSource) {
        self.clock = clock
    }

    /// Records that an origin does not have a source.
    ///
    /// - Returns: Whether stale renditions may still be served.
    func note(_ source: SourceURL, grace: Duration) -> Bool {
        let now = clock.monotonicNanoseconds()
        let first = since.withLock { since in
            if let first = since[source.canonical] { return first }
            if since.count >= Self.limit {
                let times = since.values.sorted()
                since = since.filter { $0.value > times[times.count / 2] }
            }
            since[source.canonical] = now
            return now
        }
        return .nanoseconds(Int64(clamping: now - first)) < grace
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
