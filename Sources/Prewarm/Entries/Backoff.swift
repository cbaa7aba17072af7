/// How long to wait before something is tried again: longer each time, never for ever, and as long as the other side asks.
struct Backoff: Sendable {
    /// Before the second attempt.
    static let first = Duration.milliseconds(250)
    static let longest = Duration.seconds(30)

    private(set) var attempts = 0

    /// The wait before the next attempt.
    ///
    /// - Parameter retryAfter: Seconds the other side asked for; up to five minutes of them are honoured.
    mutating func next(retryAfter: Int?) -> Duration {
        let doubled = Self.first * (1 << min(attempts, 10))
        attempts += 1
        // Spread, so that those who failed together do not come back together.
        let own = min(doubled, Self.longest) * Double.random(in: 0.75...1.25)
        return max(own, .seconds(min(max(retryAfter ?? 0, 0), 300)))
    }
}
