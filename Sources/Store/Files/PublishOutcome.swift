package import SystemIO

/// The outcome of publishing a rendition. In every case the rendition can be served.
package enum PublishOutcome: Sendable {
    case stored(CachedRendition)
    /// The object was stored already. The stored object is used, and the new file is discarded.
    case existing(CachedRendition)
    /// It is not stored. Its file exists until the rendition is released.
    case unstored(CachedRendition, UnstoredReason)

    package var rendition: CachedRendition {
        switch self {
        case .stored(let rendition), .existing(let rendition), .unstored(let rendition, _): rendition
        }
    }
}

package enum UnstoredReason: Error, Sendable, Equatable, CustomStringConvertible {
    case unwanted
    /// Its source was purged after work on it had begun.
    case purged
    /// It is larger than ``CacheConfiguration/maxBytes``.
    case tooLarge
    case diskFull
    /// Less than ``CacheConfiguration/minFreeBytes`` is free.
    case lowSpace
    case readOnly
    case directoryLost
    /// The disk takes too long, the cache is closed, or too many publishes are waiting.
    case unavailable
    case failed(SystemError)

    package var description: String {
        switch self {
        case .unwanted: "storing it was forbidden"
        case .purged: "its source was purged meanwhile"
        case .tooLarge: "it is larger than the whole cache"
        case .diskFull: "the disk is full"
        case .lowSpace: "less of the disk is free than cache.min_free_bytes requires"
        case .readOnly: "the cache's directory, or one in it, is read-only or belongs to another user"
        case .directoryLost: "the cache's directory or a part of it was removed or replaced"
        case .unavailable: "the cache's disk takes too long, or the cache is closed"
        case .failed(let error): error.description
        }
    }
}
