/// A token bucket, stored as the moment at which it is full again (the generic cell rate algorithm, ITU-T I.371).
struct TokenBucket {
    /// How fast a bucket fills, and how much it holds.
    struct Rate {
        /// Nanoseconds in which a bucket gains one token.
        let interval: UInt64
        /// Nanoseconds in which an empty bucket becomes full.
        let span: UInt64
        private let perMinute: Int

        init(_ limit: RateLimit) {
            perMinute = max(1, limit.perMinute)
            interval = 60_000_000_000 / UInt64(perMinute)
            // The interval of a rate of bytes has no whole nanoseconds.
            span = limit.burst == limit.perMinute ? 60_000_000_000 : interval * UInt64(max(1, limit.burst))
        }

        /// Nanoseconds in which a bucket gains the tokens, at most an hour.
        func time(of tokens: Int) -> UInt64 { UInt64(min(Double(max(0, tokens)) * 60e9 / Double(perMinute), 3600e9)) }
    }

    /// In nanoseconds of the monotonic clock.
    private(set) var fullAt: UInt64

    /// Takes a token.
    ///
    /// - Returns: Nil on success; otherwise the seconds until the bucket has a token, at least 1.
    mutating func take(at now: UInt64, _ rate: Rate) -> Int? {
        // A bucket that was used under a slower rate is at worst empty under this one.
        let next = min(max(fullAt, now), now + rate.span) + rate.interval
        if next - now > rate.span { return Self.seconds(next - now - rate.span) }
        fullAt = next
        return nil
    }

    /// Returns a token.
    mutating func giveBack(_ rate: Rate) {
        fullAt -= min(fullAt, rate.interval)
    }

    /// Takes tokens that are used already. The bucket may owe up to an hour.
    mutating func charge(_ tokens: Int, at now: UInt64, _ rate: Rate) {
        fullAt = min(max(fullAt, now) + rate.time(of: tokens), now + rate.span + 3_600_000_000_000)
    }

    /// The seconds until the debt is repaid, at least 1; nil without a debt.
    func secondsUntilRepaid(at now: UInt64, _ rate: Rate) -> Int? {
        fullAt > now + rate.span ? Self.seconds(fullAt - now - rate.span) : nil
    }

    private static func seconds(_ nanoseconds: UInt64) -> Int { Int((nanoseconds + 999_999_999) / 1_000_000_000) }
}
