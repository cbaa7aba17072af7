package import Cache
package import HTTP
internal import Renditions
internal import Synchronization

/// A token bucket a client, in a table of fixed size.
///
/// A bucket is kept as the one moment at which it will be full again, which says the same (the generic cell rate
/// algorithm, ITU-T I.371). Where the table has no place for another client, the bucket in its set that is fullest goes:
/// it tells the least. Any thread; a call holds a lock for the look at one set.
package final class RateLimiter: Sendable {
    private struct Bucket {
        var client: ClientNetwork
        /// In nanoseconds of the monotonic clock.
        var fullAt: UInt64
    }

    private let buckets: Mutex<[Bucket?]>
    private let setMask: Int
    /// Nanoseconds in which one token comes back.
    private let interval: UInt64
    /// Nanoseconds in which an empty bucket is full again.
    private let span: UInt64
    private let now: @Sendable () -> UInt64

    private static let ways = 4

    /// - Parameter sets: A power of two; a set holds four clients, some 130 bytes together.
    package init(_ limit: RateLimit, sets: Int = 16_384, clock: CacheClock = .system) {
        buckets = Mutex(Array(repeating: nil, count: sets * Self.ways))
        setMask = sets - 1
        interval = 60_000_000_000 / UInt64(max(1, limit.perMinute))
        span = interval * UInt64(max(1, limit.burst))
        now = clock.monotonicNanoseconds
    }

    /// Takes a token of the client's.
    ///
    /// - Returns: Nil where there was one; else the seconds until there is, at least one.
    package func take(_ client: ClientNetwork) -> Int? {
        let now = now()
        var hasher = Hasher()
        hasher.combine(client)
        // Seeded anew in each process, so nobody can choose addresses that meet in one set.
        let start = (hasher.finalize() & setMask) * Self.ways
        return buckets.withLock { buckets in
            let set = start..<start + Self.ways
            let place = set.first { buckets[$0]?.client == client }
            let fullAt = max(place.flatMap { buckets[$0]?.fullAt } ?? now, now) + interval
            if fullAt - now > span {
                return Int((fullAt - now - span + 999_999_999) / 1_000_000_000)
            }
            buckets[place ?? Self.leastTelling(set, buckets)] = Bucket(client: client, fullAt: fullAt)
            return nil
        }
    }

    /// The allowance of a request.
    ///
    /// - Parameter client: Nil if the address is unknown (a Unix socket without a trusted proxy). Such clients would share one
    ///   bucket, so they are not limited.
    func allowance(for client: ClientNetwork?) -> MissAllowance {
        guard let client else { return .unlimited }
        return MissAllowance { self.take(client) }
    }

    private static func leastTelling(_ set: Range<Int>, _ buckets: [Bucket?]) -> Int {
        set.min { (buckets[$0]?.fullAt ?? 0) < (buckets[$1]?.fullAt ?? 0) } ?? set.lowerBound
    }
}
