/// The cache's settings.
package struct CacheConfiguration: Sendable, Equatable {
    /// Where the cache lives; made if missing. One server a directory. Default `var/cache`.
    package var directory = "var/cache"
    /// Bytes of renditions kept at most. Eviction starts at 95 % and stops at 90 %. Default 10 GiB.
    package var maxBytes: Int64 = 10 << 30
    /// Bytes of the file system left free: below, renditions are evicted and new ones are not stored. Default 1 GiB.
    package var minFreeBytes: Int64 = 1 << 30
    /// Seconds an alias is trusted before its origin is asked again. Default one day.
    package var freshFor: Int64 = 86_400
    /// Seconds after that in which the old answer may still be given. Default seven days.
    package var staleFor: Int64 = 7 * 86_400
    /// Aliases, and as many objects, kept open in memory; each object takes one descriptor. Default 2048.
    package var hotEntries = 2048
    /// Threads that look up what is not hot: index, open, check. Default 2.
    package var lookupThreads = 2
    /// Threads that publish and purge. Default 2: one may wait for the disk while the other hashes.
    package var publishThreads = 2
    /// Look-ups, and as many publishes, that may wait for a thread. A look-up beyond is a miss. Default 8192.
    package var queueLimit = 8192
    /// Bytes a second that are read in the background to check their SHA-256; 0 turns it off. Default 8 MiB.
    package var scrubBytesPerSecond: Int64 = 8 << 20
    /// Milliseconds between two rounds of housekeeping. Default 1000.
    package var housekeepingInterval = 1000

    package init() {}

    /// Checks every setting.
    ///
    /// - Throws: ``CacheError/invalidSetting(name:reason:)`` for the first that is wrong.
    package func validate() throws(CacheError) {
        try check("directory", !directory.isEmpty && !directory.utf8.contains(0), "must name a directory")
        try check("max_bytes", (1 << 20...1 << 60).contains(maxBytes), "must be at least 1 MiB")
        try check("min_free_bytes", (0...(1 << 60)).contains(minFreeBytes), "must be 0 to 1 EiB")
        try check("fresh_for", (0...Self.longest).contains(freshFor), "must be 0 to ten years")
        try check("stale_for", (0...Self.longest).contains(staleFor), "must be 0 to ten years")
        try check("hot_entries", (1...1_000_000).contains(hotEntries), "must be 1 to 1000000")
        try check("lookup_threads", (1...64).contains(lookupThreads), "must be 1 to 64")
        try check("publish_threads", (1...64).contains(publishThreads), "must be 1 to 64")
        try check("queue_limit", queueLimit >= 1, "must be at least 1")
        try check("scrub_bytes_per_second", scrubBytesPerSecond >= 0, "must not be negative")
        try check("housekeeping_interval", (1...3_600_000).contains(housekeepingInterval), "must be 1 ms to one hour")
    }

    /// Ten years in seconds: sums of such times with any date stay far from overflow.
    private static let longest: Int64 = 3650 * 86_400

    private func check(_ name: String, _ holds: Bool, _ reason: String) throws(CacheError) {
        guard holds else { throw .invalidSetting(name: name, reason: reason) }
    }
}
