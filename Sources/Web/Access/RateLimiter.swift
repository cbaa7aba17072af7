package import Cache
package import HTTP
internal import Renditions
internal import Synchronization

/// One token bucket per client, in a table of fixed size.
///
/// A bucket is stored as the moment at which it is full again, which is equivalent (the generic cell rate algorithm,
/// ITU-T I.371). If the table has no slot for another client, it replaces the fullest bucket of its set, which carries the
/// least information. Any thread; a call holds a lock while it searches one set. The buckets live as long as the process.
package final class RateLimiter: Sendable {
    private struct Bucket {
        var client: ClientNetwork
        /// In nanoseconds of the monotonic clock.
        var fullAt: UInt64
    }

    private struct State {
        /// Empty until the first miss is counted.
        var buckets: [Bucket?] = []
        /// Nanoseconds in which a bucket gains one token.
        var interval: UInt64
        /// Nanoseconds in which an empty bucket becomes full.
        var span: UInt64

        init(_ limit: RateLimit) {
            interval = 60_000_000_000 / UInt64(max(1, limit.perMinute))
            span = interval * UInt64(max(1, limit.burst))
        }
    }

    private let state: Mutex<State>
    private let capacity: Int
    private let setMask: Int
    private let now: @Sendable () -> UInt64

    private static let ways = 4

    /// - Parameters:
    ///   - limit: Nil if requests are not limited yet; ``apply(_:)`` sets it before the first one is counted.
    ///   - sets: A power of two. A set has four buckets, of about 130 bytes together.
    package init(_ limit: RateLimit?, sets: Int = 16_384, clock: CacheClock = .system) {
        state = Mutex(State(limit ?? RateLimit(perMinute: 1, burst: 1)))
        capacity = sets * Self.ways
        setMask = sets - 1
        now = clock.monotonicNanoseconds
    }

    /// Changes the limit. Used tokens stay used; no bucket takes longer to fill than an empty one under the new limit.
    package func apply(_ limit: RateLimit) {
        state.withLock { state in
            let new = State(limit)
            state.interval = new.interval
            state.span = new.span
        }
    }

    /// Takes a token from the client's bucket.
    ///
    /// - Returns: Nil on success; otherwise the seconds until the bucket has a token, at least 1.
    package func take(_ client: ClientNetwork) -> Int? {
        let now = now()
        var hasher = Hasher()
        hasher.combine(client)
        // The hasher is seeded per process, so clients cannot choose addresses that share a set with others.
        let start = (hasher.finalize() & setMask) * Self.ways
        return state.withLock { state in
            if state.buckets.isEmpty { state.buckets = Array(repeating: nil, count: capacity) }
            let set = start..<start + Self.ways
            let index = set.first { state.buckets[$0]?.client == client }
            let known = index.flatMap { state.buckets[$0]?.fullAt } ?? now
            // A bucket that was used under a slower limit is at worst empty under this one.
            let fullAt = min(max(known, now), now + state.span) + state.interval
            if fullAt - now > state.span {
                return Int((fullAt - now - state.span + 999_999_999) / 1_000_000_000)
            }
            state.buckets[index ?? Self.fullest(set, state.buckets)] = Bucket(client: client, fullAt: fullAt)
            return nil
        }
    }

    /// Returns the allowance of a request.
    ///
    /// - Parameter client: Nil if the address is unknown (a Unix socket without a trusted proxy). Such clients would share a
    ///   bucket, so they are not limited.
    func allowance(for client: ClientNetwork?) -> MissAllowance {
        guard let client else { return .unlimited }
        return MissAllowance { self.take(client) }
    }

    private static func fullest(_ set: Range<Int>, _ buckets: [Bucket?]) -> Int {
        set.min { (buckets[$0]?.fullAt ?? 0) < (buckets[$1]?.fullAt ?? 0) } ?? set.lowerBound
    }
}
