package import SystemIO

/// What became of a rendition that was published. In every case it can be answered with.
package enum PublishOutcome: Sendable {
    /// It is stored.
    case stored(CachedRendition)
    /// The object was there already; that one is used and the new file let go.
    case existing(CachedRendition)
    /// It is not stored; its file lives as long as it is held.
    case unstored(CachedRendition, UnstoredReason)

    /// What to answer with.
    package var rendition: CachedRendition {
        switch self {
        case .stored(let rendition), .existing(let rendition), .unstored(let rendition, _): rendition
        }
    }
}

/// Why a rendition was not stored.
package enum UnstoredReason: Error, Sendable, Equatable, CustomStringConvertible {
    /// The publisher did not want it stored.
    case unwanted
    /// Its source was purged after the work on it had begun.
    case purged
    /// It is larger than the whole cache may be.
    case tooLarge
    /// The disk is full.
    case diskFull
    /// Less of the disk is free than ``CacheConfiguration/minFreeBytes``.
    case lowSpace
    /// The file system is read-only, or the directory does not let us write.
    case readOnly
    /// The cache's directory was removed or replaced.
    case directoryLost
    /// The cache is closed, or too many publishes wait.
    case unavailable
    /// Something else failed.
    case failed(SystemError)

    package var description: String {
        switch self {
        case .unwanted: "it was not to be stored"
        case .purged: "its source was purged meanwhile"
        case .tooLarge: "it is larger than the whole cache"
        case .diskFull: "the disk is full"
        case .lowSpace: "less of the disk is free than cache.min_free_bytes asks for"
        case .readOnly: "the cache's directory is read-only"
        case .directoryLost: "the cache's directory is gone"
        case .unavailable: "the cache takes no more work"
        case .failed(let error): error.description
        }
    }
}
