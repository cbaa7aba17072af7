/// How many renditions one client may have made.
package struct RateLimit: Sendable, Equatable {
    /// Misses a minute in the long run.
    package var perMinute: Int
    /// Misses at once after a pause.
    package var burst: Int

    package init(perMinute: Int, burst: Int) {
        self.perMinute = perMinute
        self.burst = burst
    }
}
