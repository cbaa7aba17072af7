/// The settings of the cache.
package struct CacheConfiguration: Sendable, Equatable {
    /// The directory, which is created if it is missing. Each server needs its own. Default `var/cache`.
    package var directory = "var/cache"
    /// The largest number of bytes of stored renditions. Eviction starts at 95 % and stops at 90 %. Default 10 GiB.
    package var maxBytes: Int64 = 10 << 30
    /// The bytes of the file system that stay free. Below, renditions are evicted and new ones are not stored. Default 1 GiB.
    package var minFreeBytes: Int64 = 1 << 30
    /// Seconds for which an alias is fresh, unless its origin said otherwise. Default one day.
    package var freshFor: Int64 = 86_400
    /// Seconds after that in which the alias may be used while its origin is asked again. Default seven days.
    package var staleFor: Int64 = 7 * 86_400
    /// The largest number of aliases in memory, and of open objects. Each object takes one descriptor. Default 2048.
    package var hotEntries = 2048
    /// Threads for look-ups on disk: row, open, comparison. Default 2.
    package var lookupThreads = 2
    /// Threads that publish. Default 2: one can wait for the disk while the other hashes.
    package var publishThreads = 2
    /// The largest number of look-ups, and of publishes, that wait for a thread. A look-up beyond is a miss. Default 8192.
    package var queueLimit = 8192
    /// Bytes per second that are read in the background to compare them with their SHA-256; 0 turns it off. A file
    /// counts as at least 64 KiB. Default 8 MiB.
    package var scrubBytesPerSecond: Int64 = 8 << 20
    /// Milliseconds between two rounds of housekeeping. Default 1000.
    package var housekeepingInterval = 1000

    package init() {}

    /// Checks every setting.
    ///
    /// - Throws: ``CacheError/invalidSetting(name:reason:)`` for the first that is out of range.
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

    /// Ten years in seconds. Sums of such times and any date cannot overflow.
    private static let longest: Int64 = 3650 * 86_400

    private func check(_ name: String, _ holds: Bool, _ reason: String) throws(CacheError) {
        guard holds else { throw .invalidSetting(name: name, reason: reason) }
    }
}
