package import CoreMetrics
package import HTTP
internal import Renditions
internal import Synchronization
package import SystemIO

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
    }

    /// Adopts the rates of a policy. Used tokens stay used.
    package func apply(_ policy: WebPolicy) {
        if let limit = policy.rateLimit { misses.setLimit(limit) }
        if let limit = policy.uploadLimit { uploads.setLimit(limit) }
        if let limit = policy.byteLimit { bytes.setLimit(limit) }
        countsBytes.store(policy.byteLimit != nil, ordering: .relaxed)
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
