/// Exponential backoff with jitter, so that many clients do not retry at the same moment.
package struct Backoff: Sendable, Equatable {
    package var first: Duration
    package var longest: Duration

    package init(first: Duration, longest: Duration) {
        self.first = first
        self.longest = longest
    }

    /// Returns the pause after `failures` consecutive failures: 50–100% of `first` × 2^(failures − 1), capped at ``longest``.
    package func pause(after failures: Int, using generator: inout some RandomNumberGenerator) -> Duration {
        let doublings = min(max(0, failures - 1), 30)
        let full = min(first * (1 << doublings), longest)
        return full * Double.random(in: 0.5...1, using: &generator)
    }

    package func pause(after failures: Int) -> Duration {
        var generator = SystemRandomNumberGenerator()
        return pause(after: failures, using: &generator)
    }
}
