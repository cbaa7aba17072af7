internal import HTTP

/// One request's right to have something made, used when it turns out that the cache does not have it.
struct MissAllowance: Sendable {
    private let limiter: RateLimiter?
    private let client: ClientNetwork?

    /// - Parameter client: Nil where nobody knows who asks (a Unix socket without a trusted proxy before it): such requests
    ///   would share one bucket, so they are not limited.
    init(limiter: RateLimiter?, client: ClientNetwork?) {
        self.limiter = limiter
        self.client = client
    }

    /// Of work that no visitor asked for.
    static let unlimited = MissAllowance(limiter: nil, client: nil)

    /// Counts a miss. Nil where it may go on, else why not.
    func use() -> Problem? {
        guard let limiter, let client, let seconds = limiter.take(client) else { return nil }
        return .rateLimited(retryAfter: seconds)
    }
}
