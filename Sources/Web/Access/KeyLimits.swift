internal import CoreMetrics
internal import Renditions
internal import Synchronization
internal import SystemIO
internal import Telemetry

/// Counts the requests of named keys, and limits the misses of keys that have a rate. Any thread.
///
/// A rate applies to all clients of a key together. The buckets are stored by key name and live as long as the process.
final class KeyLimits: Sendable {
    private let requests: LabelledCounter
    private let misses: LabelledCounter
    private let refusals: LabelledCounter
    /// The moments at which the buckets are full again, in nanoseconds of the monotonic clock; see ``RateLimiter``.
    private let buckets = Mutex<[String: UInt64]>([:])
    private let now: @Sendable () -> UInt64

    init(clock: TimeSource, factory: any MetricsFactory) {
        requests = LabelledCounter(.keyRequests, label: "key", factory: factory)
        misses = LabelledCounter(.keyMisses, label: "key", factory: factory)
        refusals = LabelledCounter(.keyRefusals, label: "key", factory: factory)
        now = clock.monotonicNanoseconds
    }

    /// Counts a request that a key has signed.
    func granted(_ key: String) { requests.increment(key) }

    /// Counts a request that was refused because of the hosts or the rate of its key.
    func refused(_ key: String) { refusals.increment(key) }

    /// Returns the permission of a request to cause a miss.
    ///
    /// - Parameter general: The permission of requests whose key has no rate.
    func allowance(_ key: SigningKey, otherwise general: MissAllowance) -> MissAllowance {
        guard let name = key.name else { return general }
        return MissAllowance { [self] isRequired in
            let wait = key.rate.map { take(name, $0) } ?? general.take(isRequired)
            if wait == nil { misses.increment(name) } else if isRequired { refused(name) }
            return wait
        } giveBack: { [self] in
            if let rate = key.rate { giveBack(name, rate) } else { general.giveBack() }
        }
    }

    private func giveBack(_ key: String, _ limit: RateLimit) {
        buckets.withLock { buckets in
            guard let fullAt = buckets[key] else { return }
            var bucket = TokenBucket(fullAt: fullAt)
            bucket.giveBack(TokenBucket.Rate(limit))
            buckets[key] = bucket.fullAt
        }
    }

    private func take(_ key: String, _ limit: RateLimit) -> Int? {
        let now = now()
        return buckets.withLock { buckets in
            var bucket = TokenBucket(fullAt: buckets[key] ?? now)
            defer { buckets[key] = bucket.fullAt }
            return bucket.take(at: now, TokenBucket.Rate(limit))
        }
    }
}
