/// An event of the cache that an operator should know; its description is a line for the log.
package enum CacheEvent: Sendable, Equatable, CustomStringConvertible {
    /// The index could not be used and is being rebuilt from the journal.
    case indexRebuilt(cause: String)
    /// At the start, less of the disk is free than ``CacheConfiguration/minFreeBytes``. Both in bytes.
    case freeSpaceBelowMinimum(free: Int64, minimum: Int64)
    /// The directory was removed or replaced while it was in use, and the cache has started afresh in the one at its path.
    case directoryReplaced(path: String)

    package var description: String {
        switch self {
        case .indexRebuilt(let cause):
            "the cache's index cannot be used and is rebuilt from the journal: \(cause)"
        case .freeSpaceBelowMinimum(let free, let minimum):
            """
            cache.min_free_bytes asks for \(minimum) bytes to stay free, but only \(free) are: renditions are evicted and new \
            ones are not stored until enough is free
            """
        case .directoryReplaced(let path):
            "the cache directory \(path) was removed or replaced; the cache starts afresh in it"
        }
    }
}
