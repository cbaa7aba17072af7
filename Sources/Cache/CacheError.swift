package import SystemIO

/// Why the cache could not do what it was asked.
package enum CacheError: Error, Sendable, CustomStringConvertible {
    /// A setting is wrong: its name in ``CacheConfiguration`` and what is wrong with it.
    case invalidSetting(name: String, reason: String)
    /// Another server holds the directory.
    case directoryInUse(path: String, holder: String)
    /// The directory cannot be made, opened or used.
    case directoryUnusable(path: String, cause: SystemError)
    /// The index cannot be opened even after it was made anew.
    case indexUnusable(path: String, cause: String)
    /// No room for the bytes of a new rendition, neither on disk nor in memory.
    case stagingFailed(SystemError)
    /// The staged file cannot be read, is empty, or was published before.
    case stagedFileUnusable(reason: String)
    /// The purge is in force now, but could not be written down: a restart may forget it.
    case purgeNotDurable(cause: String)
    /// The cache is closed.
    case closed

    package var description: String {
        switch self {
        case .invalidSetting(let name, let reason):
            "cache.\(name) \(reason)"
        case .directoryInUse(let path, let holder):
            "the cache directory \(path) is in use by another server (\(holder)); give each server a directory of its own"
        case .directoryUnusable(let path, let cause):
            "the cache directory \(path) cannot be used: \(cause)"
        case .indexUnusable(let path, let cause):
            "the cache's index \(path) cannot be used: \(cause)"
        case .stagingFailed(let cause):
            "no room for a new rendition: \(cause)"
        case .stagedFileUnusable(let reason):
            "the staged rendition cannot be published: \(reason)"
        case .purgeNotDurable(let cause):
            "the purge is in force but could not be written to disk, so a restart may undo it: \(cause)"
        case .closed:
            "the cache is closed"
        }
    }
}

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
