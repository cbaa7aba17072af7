package import SystemIO

package enum CacheError: Error, Sendable, CustomStringConvertible {
    case directoryInUse(path: String, holder: String)
    case directoryUnusable(path: String, cause: SystemError)
    /// Not even an empty ledger can be opened.
    case ledgerUnusable(path: String, cause: String)
    /// Neither the disk nor the memory has space for a new rendition.
    case stagingFailed(SystemError)
    /// The staged file cannot be read, is empty, was published before, or has metadata out of range.
    case stagedFileUnusable(reason: String)
    case purgeNotDurable(cause: String)
    case noThread
    case closed
    case busy

    package var description: String {
        switch self {
        case .directoryInUse(let path, let holder):
            "the cache directory \(path) is in use by another server (\(holder)); give each server a directory of its own"
        case .directoryUnusable(let path, let cause):
            "the cache directory \(path) cannot be used: \(cause)"
        case .ledgerUnusable(let path, let cause):
            "the database \(path) cannot be used: \(cause)"
        case .stagingFailed(let cause):
            "no space for a new rendition: \(cause)"
        case .stagedFileUnusable(let reason):
            "the staged rendition cannot be published: \(reason)"
        case .purgeNotDurable(let cause):
            "the purge took effect but could not be written to disk, so a restart may undo it: \(cause)"
        case .noThread:
            "the cache cannot start a thread: \(SystemThread.shortage)"
        case .closed:
            "the cache is closed"
        case .busy:
            "too many lookups wait for the disk"
        }
    }
}

/// A cache event for the operator; its description is a log line.
package enum CacheEvent: Sendable, Equatable, CustomStringConvertible {
    /// The database was damaged and was put aside. The cache begins empty.
    case ledgerReplaced(cause: String)
    /// The database cannot be changed, so nothing is stored until it can be changed again.
    case storingStopped(cause: String)
    case storingResumed
    /// At startup, less of the disk is free than ``CacheConfiguration/minFreeBytes``. Both values are in bytes.
    case freeSpaceBelowMinimum(free: Int64, minimum: Int64)
    /// The process has no descriptors left, so half of the renditions in use were closed.
    case descriptorsExhausted(limit: Int)
    /// The directory was removed or replaced while it was in use. Nothing is stored until a restart.
    case directoryLost(path: String)

    package var description: String {
        switch self {
        case .ledgerReplaced(let cause):
            "the cache's database is damaged, was put aside as \(Ledger.damagedFileName), and the cache begins empty: \(cause)"
        case .storingStopped(let cause):
            "the cache's database cannot be changed, so nothing is stored for now: \(cause)"
        case .storingResumed:
            "the cache's database can be changed again, and renditions are stored"
        case .freeSpaceBelowMinimum(let free, let minimum):
            """
            cache.min_free_bytes requires \(minimum) free bytes, but only \(free) are free: until then renditions are evicted \
            and new ones are not stored
            """
        case .descriptorsExhausted(let limit):
            "file descriptors are exhausted (limit \(limit)): open renditions are closed; raise LimitNOFILE or ulimit -n"
        case .directoryLost(let path):
            "the cache directory \(path) or a part of it was removed or replaced; nothing is stored until the server is restarted"
        }
    }
}
