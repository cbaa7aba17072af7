internal import Ledger
internal import Synchronization

/// The renditions that a purge covers.
package enum PurgeScope: Sendable, Hashable {
    /// Every rendition of this source: its canonical URL, compared byte by byte.
    case url(String)
    /// Every rendition of a source whose canonical URL begins with these bytes.
    case prefix(String)
    /// This rendition and every alias to it.
    case object(ObjectID)
    /// Everything, including uploaded renditions.
    case all

    /// Whether a rendition is covered.
    ///
    /// - Parameters:
    ///   - sourceURL: Its source's canonical URL; nil for an upload.
    ///   - object: Its id; nil if it is not known yet.
    package func covers(_ sourceURL: String?, object: ObjectID? = nil) -> Bool {
        switch self {
        case .all: true
        case .object(let id): object == id
        case .url(let url): sourceURL.map { $0.utf8.elementsEqual(url.utf8) } ?? false
        case .prefix(let prefix): sourceURL?.utf8.starts(with: prefix.utf8) ?? false
        }
    }
}

/// The result of a purge.
package struct PurgeResult: Sendable, Equatable {
    /// The number of renditions forgotten: aliases, and objects without one.
    package let purged: Int64
    /// The bytes of the removed files.
    package let bytes: Int64

    package init(purged: Int64, bytes: Int64) {
        self.purged = purged
        self.bytes = bytes
    }
}

/// A moment in the order of purges: the number of purges before it.
///
/// Work that will be published notes the epoch first; if a later purge covers its source, the result is not stored. Valid within
/// one run of the server.
package struct Epoch: Sendable, Hashable, Comparable {
    let number: Int64

    package static func < (left: Epoch, right: Epoch) -> Bool {
        left.number < right.number
    }
}

/// A state of the cache: it changes with each rendition that is stored and with each purge, but not with evictions. Valid within
/// one run of the server.
package struct CacheVersion: Sendable, Equatable {
    package let epoch: Epoch
    let commits: Int64
}

/// The latest purges, in order. It decides whether a purge overtook a piece of work.
///
/// Bounded: when it is full, the oldest purges are dropped, and work begun before them counts as overtaken whatever its source.
/// Its result is then used but not stored, which is always safe. Any thread; the lock is held for a short scan.
final class PurgeLog: Sendable {
    /// A purge, or another event that overtakes work like a purge of everything.
    enum Entry: Sendable, Equatable {
        case purge(PurgeScope)
        /// See ``Cache/revalidateAll(_:with:)``.
        case revalidation(MissedPurges)

        /// The renditions whose work it overtakes.
        fileprivate var scope: PurgeScope {
            if case .purge(let scope) = self { scope } else { .all }
        }
    }

    private struct State {
        /// The number of entries so far.
        var number: Int64 = 0
        /// The entries `number - entries.count + 1 ... number`.
        var entries: ArraySlice<Entry> = []
    }

    private let state = Mutex(State())
    private let limit: Int

    init(limit: Int = 4096) {
        self.limit = limit
    }

    var epoch: Epoch {
        state.withLock { Epoch(number: $0.number) }
    }

    /// Records a purge, which from now on overtakes all older epochs of covered renditions.
    func append(_ scope: PurgeScope) {
        append(.purge(scope))
    }

    /// Records an event, which from now on overtakes all older epochs of covered renditions.
    func append(_ entry: Entry) {
        state.withLock { state in
            state.number += 1
            state.entries.append(entry)
            if state.entries.count > limit {
                // A slice keeps its removed front allocated; the copy bounds that.
                state.entries = ArraySlice(state.entries.suffix(limit / 2))
            }
        }
    }

    /// Whether a purge that covers the rendition came after `epoch`; see ``PurgeScope/covers(_:object:)``.
    func overtook(_ epoch: Epoch, sourceURL: String?, object: ObjectID? = nil) -> Bool {
        contains(since: epoch) { $0.scope.covers(sourceURL, object: object) }
    }

    /// Whether the object itself was purged after `epoch`. Purges of URLs, prefixes and everything do not count.
    func containsPurge(of object: ObjectID, since epoch: Epoch) -> Bool {
        contains(since: epoch) { $0 == .purge(.object(object)) }
    }

    /// Whether a matching entry came after `epoch`; true if some of the later entries were dropped.
    private func contains(since epoch: Epoch, _ matches: (Entry) -> Bool) -> Bool {
        state.withLock { state in
            let later = state.number - epoch.number
            if later == 0 { return false }
            if later > Int64(state.entries.count) { return true }
            return state.entries.suffix(Int(later)).contains(where: matches)
        }
    }
}

/// Points between the steps of an operation, outside any lock, at which a purge by another thread may come in between. A test
/// switches threads at them and so tests many orders.
enum Step: Sendable, CaseIterable {
    case lookupNotedEpoch, lookupReadIndex, lookupOpenedFile
    case publishMeasured, publishSynced, publishCommitted
    case purgeInForce, purgeCooled
    case evictedFromDisk
}
