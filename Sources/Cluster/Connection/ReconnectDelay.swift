/// Delays between attempts to connect: doubled after each failure, with jitter so that nodes do not come back all at once.
struct ReconnectDelay {
    private static let first: Duration = .milliseconds(50)
    private static let last: Duration = .milliseconds(1000)
    private var current = first

    /// The next delay: between half of the current step and all of it.
    mutating func next() -> Duration {
        defer { current = min(current * 2, Self.last) }
        return current / 2 + current / 2 * Double.random(in: 0...1)
    }

    mutating func reset() {
        current = Self.first
    }
}
