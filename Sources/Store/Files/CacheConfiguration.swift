/// The settings of the cache. Values must be in the documented ranges; they are not checked.
package struct CacheConfiguration: Sendable, Equatable {
    /// The directory, which is created if it is missing. Each server needs its own.
    package var directory = "var/cache"
    /// The largest number of bytes of stored renditions. Eviction starts at 95 % and stops at 90 %.
    package var maxBytes: Int64 = 10 << 30
    /// The bytes of the file system to keep free. If less is free, renditions are evicted and new ones are not stored.
    package var minFreeBytes: Int64 = 1 << 30
    /// Seconds for which an alias is fresh, unless its origin said otherwise.
    package var freshFor: Int64 = 86_400
    /// Seconds after ``freshFor`` during which the alias may be used while its origin is asked again.
    package var staleFor: Int64 = 7 * 86_400
    /// The largest number of aliases in memory, and of open objects. Each object takes one descriptor.
    package var hotEntries = 2048
    /// Threads for lookups on disk: read row, open and verify file.
    package var lookupThreads = 2
    /// Threads that publish. With two, one can wait for the disk while the other hashes.
    package var publishThreads = 2
    /// The largest number of lookups, and of publishes, that wait for a thread. A lookup beyond the limit is a miss.
    package var queueLimit = 8192
    /// Bytes per second to read in the background to verify files against their SHA-256; 0 turns this off. A file counts as at
    /// least 64 KiB.
    package var scrubBytesPerSecond: Int64 = 8 << 20
    /// The time between two rounds of housekeeping.
    package var housekeepingInterval = Duration.seconds(1)

    package init() {}
}
