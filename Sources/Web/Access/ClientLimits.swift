package import CoreMetrics
package import HTTP
internal import Renditions
internal import Synchronization
package import SystemIO
internal import Telemetry

/// The rate limits of clients and keys. They live as long as the process; a reload changes the rates.
///
/// Misses and uploads are counted when they begin. Bytes are counted when a response has ended, by the bytes that the kernel
/// accepted, so a response is never cut: a client that is over the limit is refused at its next request.
package final class ClientLimits: Sendable {
    let misses: RateLimiter
    let uploads: RateLimiter
    let bytes: RateLimiter
    let keys: KeyLimits
    private let countsBytes: Atomic<Bool>

    package init(_ policy: WebPolicy, clock: TimeSource = .system, factory: any MetricsFactory) {
        misses = RateLimiter(policy.rateLimit, clock: clock)
        uploads = RateLimiter(policy.uploadLimit, clock: clock)
        bytes = RateLimiter(policy.byteLimit, clock: clock)
        keys = KeyLimits(clock: clock, factory: factory)
        countsBytes = Atomic(policy.byteLimit != nil)
        keys.show(policy.signingKeys.names)
    }

    /// Adopts the rates of a policy. Used tokens stay used.
    package func apply(_ policy: WebPolicy) {
        if let limit = policy.rateLimit { misses.setLimit(limit) }
        if let limit = policy.uploadLimit { uploads.setLimit(limit) }
        if let limit = policy.byteLimit { bytes.setLimit(limit) }
        countsBytes.store(policy.byteLimit != nil, ordering: .relaxed)
        keys.show(policy.signingKeys.names)
    }
}

extension ClientLimits: HTTPObserver {
    package func requestsFinished(_ batch: HTTPAccessBatch) { charge(batch) }

    package func requestsDropped(_ batch: HTTPAccessBatch) { charge(batch) }

    private func charge(_ batch: HTTPAccessBatch) {
        guard countsBytes.load(ordering: .relaxed) else { return }
        batch.forEach { record in
            if let client = record.client, record.bytes > 0 { bytes.charge(ClientNetwork(client), record.bytes) }
        }
    }
}

/// Counts the requests of named keys, and limits the misses of keys that have a rate. Any thread.
///
/// A rate applies to all clients of a key together. The buckets are stored by key name and live as long as the process.
final class KeyLimits: Sendable {
    private let requests: LabelledCounter
    private let misses: LabelledCounter
    private let refusals: LabelledCounter
    private let buckets = Mutex<[String: TokenBucket]>([:])
    /// The misses of keys that were given back and are still counted: each takes the place of a later miss, because a counter
    /// cannot decrease.
    private let refunds = Mutex<[String: Int]>([:])
    private let now: @Sendable () -> UInt64

    init(clock: TimeSource, factory: any MetricsFactory) {
        requests = LabelledCounter(.keyRequests, label: "key", factory: factory)
        misses = LabelledCounter(.keyMisses, label: "key", factory: factory)
        refusals = LabelledCounter(.keyRefusals, label: "key", factory: factory)
        now = clock.monotonicNanoseconds
    }

    /// Creates the series of keys at 0: an increase does not see the first value of a series.
    func show(_ names: [String]) {
        for name in names {
            for counter in [requests, misses, refusals] { counter.increment(name, by: 0) }
        }
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
            if wait == nil { countMiss(name) } else if isRequired { refused(name) }
            return wait
        } giveBack: { [self] in
            refunds.withLock { $0[name, default: 0] += 1 }
            if let rate = key.rate { giveBack(name, rate) } else { general.giveBack() }
        }
    }

    private func countMiss(_ key: String) {
        let isPaid = refunds.withLock { refunds in
            guard let left = refunds[key], left > 0 else { return false }
            refunds[key] = left - 1
            return true
        }
        if !isPaid { misses.increment(key) }
    }

    private func giveBack(_ key: String, _ limit: RateLimit) {
        buckets.withLock { $0[key]?.giveBack(TokenBucket.Rate(limit)) }
    }

    private func take(_ key: String, _ limit: RateLimit) -> Int? {
        let now = now()
        return buckets.withLock { $0[key, default: TokenBucket(fullAt: now)].take(at: now, TokenBucket.Rate(limit)) }
    }
}
