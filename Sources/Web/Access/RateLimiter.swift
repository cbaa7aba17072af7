internal import Renditions
internal import Synchronization
internal import SystemIO

/// One token bucket per client, in a table of fixed size.
///
/// If the table has no slot for another client, it replaces the fullest bucket of its set, which carries the
/// least information. Any thread; a call holds a lock while it searches one set. The buckets live as long as the process.
final class RateLimiter: Sendable {
    private struct Bucket {
        var client: ClientNetwork
        var tokens: TokenBucket
    }

    private struct State {
        /// Empty until the first token is taken.
        var buckets: [Bucket?] = []
        var rate: TokenBucket.Rate
    }

    private let state: Mutex<State>
    private let capacity: Int
    private let setMask: Int
    private let now: @Sendable () -> UInt64

    private static let ways = 4

    /// - Parameters:
    ///   - limit: Nil if requests are not limited yet; ``setLimit(_:)`` sets it before the first one is counted.
    ///   - sets: A power of two. A set has four buckets, of about 130 bytes together.
    init(_ limit: RateLimit?, sets: Int = 16_384, clock: TimeSource = .system) {
        state = Mutex(State(rate: TokenBucket.Rate(limit ?? RateLimit(perMinute: 1, burst: 1))))
        capacity = sets * Self.ways
        setMask = sets - 1
        now = clock.monotonicNanoseconds
    }

    /// Changes the limit. Used tokens stay used; no bucket takes longer to fill than an empty one under the new limit.
    func setLimit(_ limit: RateLimit) {
        state.withLock { $0.rate = TokenBucket.Rate(limit) }
    }

    /// Takes a token from the client's bucket.
    ///
    /// - Returns: Nil on success; otherwise the seconds until the bucket has a token, at least 1.
    func take(_ client: ClientNetwork) -> Int? {
        withBucket(of: client) { $0.take(at: $1, $2) }
    }

    /// Returns a token that the client has not used.
    func giveBack(_ client: ClientNetwork) {
        withBucket(of: client) { tokens, _, rate in tokens.giveBack(rate) }
    }

    /// Takes tokens that the client has used already. The bucket may owe some then; see ``secondsUntilRepaid(by:)``.
    func charge(_ client: ClientNetwork, _ tokens: Int) {
        withBucket(of: client) { $0.charge(tokens, at: $1, $2) }
    }

    /// The seconds until the client has repaid its debt, at least 1; nil without a debt.
    func secondsUntilRepaid(by client: ClientNetwork) -> Int? {
        let now = now()
        return state.withLock { state in
            if state.buckets.isEmpty { return nil }
            let index = set(of: client).first { state.buckets[$0]?.client == client }
            return index.flatMap { state.buckets[$0] }.flatMap { $0.tokens.secondsUntilRepaid(at: now, state.rate) }
        }
    }

    private func withBucket<Result>(
        of client: ClientNetwork, _ body: (inout TokenBucket, UInt64, TokenBucket.Rate) -> Result
    ) -> Result {
        let now = now()
        let set = set(of: client)
        return state.withLock { state in
            if state.buckets.isEmpty { state.buckets = Array(repeating: nil, count: capacity) }
            let index = set.first { state.buckets[$0]?.client == client }
            var tokens = index.flatMap { state.buckets[$0]?.tokens } ?? TokenBucket(fullAt: now)
            let before = tokens.fullAt
            let result = body(&tokens, now, state.rate)
            // A refusal changes no bucket and needs none.
            if index != nil || tokens.fullAt != before {
                state.buckets[index ?? Self.fullest(set, state.buckets)] = Bucket(client: client, tokens: tokens)
            }
            return result
        }
    }

    private func set(of client: ClientNetwork) -> Range<Int> {
        var hasher = Hasher()
        hasher.combine(client)
        // The hasher is seeded per process, so clients cannot choose addresses that share a set with others.
        let start = (hasher.finalize() & setMask) * Self.ways
        return start..<start + Self.ways
    }

    /// Returns the allowance of a request.
    ///
    /// - Parameter client: Nil if the address is unknown (a Unix socket without a trusted proxy). Such clients would share a
    ///   bucket, so they are not limited.
    func allowance(for client: ClientNetwork?) -> MissAllowance {
        guard let client else { return .unlimited }
        return MissAllowance { _ in
            self.take(client)
        } giveBack: {
            self.giveBack(client)
        }
    }

    private static func fullest(_ set: Range<Int>, _ buckets: [Bucket?]) -> Int {
        set.min { (buckets[$0]?.tokens.fullAt ?? 0) < (buckets[$1]?.tokens.fullAt ?? 0) } ?? set.lowerBound
    }
}
