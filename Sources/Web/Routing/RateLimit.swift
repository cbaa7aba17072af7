/// A limit on misses, uploads or bytes per client, or on misses per key.
package struct RateLimit: Sendable, Equatable {
    /// Misses, uploads or bytes per minute in the long run.
    package var perMinute: Int
    /// The token bucket's size: the maximum at once after a pause.
    package var burst: Int

    package init(perMinute: Int, burst: Int) {
        self.perMinute = perMinute
        self.burst = burst
    }
}
