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
        /// Empty until a client is looked up.
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

    /// Changes the limit. Used tokens stay used. Under a higher rate, no bucket takes longer to fill than an empty one; under a
    /// lower one, debts stay.
    func setLimit(_ limit: RateLimit) {
        let (now, rate) = (now(), TokenBucket.Rate(limit))
        state.withLock { state in
            let isRaised = rate.perMinute > state.rate.perMinute
            state.rate = rate
            guard isRaised else { return }
            for index in state.buckets.indices { state.buckets[index]?.tokens.forgive(at: now, rate) }
        }
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

    /// Charges tokens that the client has already used. The bucket may then be in debt; see ``secondsUntilRepaid(by:)``.
    func charge(_ client: ClientNetwork, _ tokens: Int) {
        withBucket(of: client) { $0.charge(tokens, at: $1, $2) }
    }

    /// The seconds until the client has repaid its debt, at least 1; nil without a debt.
    func secondsUntilRepaid(by client: ClientNetwork) -> Int? {
        withBucket(of: client) { $0.secondsUntilRepaid(at: $1, $2) }
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
            // A refusal neither changes nor allocates a bucket.
            if index != nil || tokens.fullAt != before {
                func fullAt(_ index: Int) -> UInt64 { state.buckets[index]?.tokens.fullAt ?? 0 }
                let place = index ?? set.min { fullAt($0) < fullAt($1) } ?? set.lowerBound
                state.buckets[place] = Bucket(client: client, tokens: tokens)
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
}

/// A token bucket, stored as the moment at which it is full again (the generic cell rate algorithm, ITU-T I.371).
struct TokenBucket {
    /// How fast a bucket fills, and how much it holds.
    struct Rate {
        /// Nanoseconds in which a bucket gains one token.
        let interval: UInt64
        /// Nanoseconds in which an empty bucket becomes full.
        let span: UInt64
        let perMinute: Int

        init(_ limit: RateLimit) {
            perMinute = max(1, limit.perMinute)
            interval = 60_000_000_000 / UInt64(perMinute)
            // The interval of a byte rate is not a whole number of nanoseconds.
            span = limit.burst == limit.perMinute ? 60_000_000_000 : interval * UInt64(max(1, limit.burst))
        }

        /// Returns the nanoseconds in which a bucket gains the tokens, at most an hour.
        func time(of tokens: Int) -> UInt64 { UInt64(min(Double(max(0, tokens)) * 60e9 / Double(perMinute), 3600e9)) }
    }

    /// The moment at which the bucket is full, in nanoseconds of the monotonic clock.
    private(set) var fullAt: UInt64

    /// Takes a token.
    ///
    /// - Returns: Nil on success; otherwise the seconds until the bucket has a token, at least 1.
    mutating func take(at now: UInt64, _ rate: Rate) -> Int? {
        // A bucket that was used under a slower rate gains tokens at this one even if the request is refused.
        forgive(at: now, rate)
        let next = max(fullAt, now) + rate.interval
        if next - now > rate.span { return Self.seconds(next - now - rate.span) }
        fullAt = next
        return nil
    }

    /// Makes the bucket at worst empty: it may have been used under a slower rate.
    mutating func forgive(at now: UInt64, _ rate: Rate) {
        fullAt = min(fullAt, now + rate.span)
    }

    mutating func giveBack(_ rate: Rate) {
        fullAt -= min(fullAt, rate.interval)
    }

    /// Charges tokens that are already used. The debt is at most an hour.
    mutating func charge(_ tokens: Int, at now: UInt64, _ rate: Rate) {
        fullAt = min(max(fullAt, now) + rate.time(of: tokens), now + rate.span + 3_600_000_000_000)
    }

    /// The seconds until the debt is repaid, at least 1; nil without a debt.
    func secondsUntilRepaid(at now: UInt64, _ rate: Rate) -> Int? {
        fullAt > now + rate.span ? Self.seconds(fullAt - now - rate.span) : nil
    }

    private static func seconds(_ nanoseconds: UInt64) -> Int { Int((nanoseconds + 999_999_999) / 1_000_000_000) }
}
