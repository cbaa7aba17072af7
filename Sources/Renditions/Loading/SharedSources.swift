internal import Fetch
internal import Store
internal import Synchronization

/// The sources that are being fetched or in memory: for requests that follow their bytes, and for renditions that need them
/// whole.
///
/// Does not keep a source in memory; the requests and flights that use it do. A follower may arrive before the fetch. It then
/// reserves an entry that the next fetch of the source fills. Any thread; lives as long as the process.
final class SharedSources: Sendable {
    private struct Entry {
        weak var arriving: ArrivingSource?
        /// The whole source, from this or an earlier fetch, while a flight holds it. A follower holds only `arriving`, which
        /// does not keep the whole source alive.
        weak var loaded: LoadedSource?
        /// Noted before the origin is asked.
        let epoch: Epoch
        /// When the origin sent `arriving`, and for how long that is fresh; nil before the end of the fetch. Slow readers may
        /// keep the bytes for longer.
        var times: OriginTimes?
        /// The bytes received when the fetch failed. The source is released soon after that.
        var lastArrived: FlightProgress.Arrived?
    }

    private let cache: Cache
    private let entries = Mutex<[SourceURL: Entry]>([:])
    /// The number of dictionary entries at which those of released sources are removed.
    private static let cleanupThreshold = 64

    init(_ cache: Cache) {
        self.cache = cache
    }

    // MARK: Requests

    /// Returns the source that is arriving or in memory, or one that the next fetch fills.
    ///
    /// The caller holds the returned value as long as it follows. A source that is stale, or was purged since its fetch began,
    /// is not returned.
    func follow(_ url: SourceURL) -> ArrivingSource {
        entries.withLock { entries in
            if let source = current(entries[url], of: url) { return source }
            return Self.insert(of: url, cache.epoch, into: &entries)
        }
    }

    /// Returns the whole source if it is in memory, fresh, and not purged.
    func whole(_ url: SourceURL) -> LoadedSource? {
        guard let source = entries.withLock({ $0[url]?.loaded }),
            !cache.purges.overtook(source.epoch, sourceURL: url.canonical), isFresh(Self.times(of: source))
        else { return nil }
        return source
    }

    /// The bytes of a source received so far, or until its fetch failed, and its size if the origin declared it; nil before the
    /// first bytes.
    func arrived(_ url: SourceURL) -> FlightProgress.Arrived? {
        let (source, last) = entries.withLock { ($0[url]?.arriving, $0[url]?.lastArrived) }
        return source.flatMap(Self.arrived(of:)) ?? last
    }

    // MARK: The fetch

    /// Returns the source that a new fetch fills: the one that followers have reserved, or a new one.
    ///
    /// - Parameter epoch: Noted before the origin is asked.
    func open(_ url: SourceURL, epoch: Epoch) -> ArrivingSource {
        entries.withLock { entries in
            if let source = current(entries[url], of: url), source.claim() { return source }
            let source = Self.insert(of: url, epoch, into: &entries)
            _ = source.claim()
            return source
        }
    }

    /// Makes a source that has been fetched available to other flights. If the origin forbids storing it, later followers get
    /// the next fetch instead.
    func share(_ loaded: LoadedSource) {
        entries.withLock { entries in
            // A later fetch of the source may have replaced the entry. Its followers keep it.
            let isReplaced = entries[loaded.url].map { $0.arriving !== loaded.arriving } ?? false
            guard loaded.storage.isAllowed else {
                if !isReplaced { entries[loaded.url] = nil }
                return
            }
            if entries[loaded.url] == nil { Self.insert(loaded.arriving, of: loaded.url, loaded.epoch, into: &entries) }
            entries[loaded.url]?.loaded = loaded
            if !isReplaced { entries[loaded.url]?.times = Self.times(of: loaded) }
        }
    }

    /// Ends a source whose fetch has failed.
    func fail(_ source: ArrivingSource, of url: SourceURL) {
        entries.withLock { entries in
            if entries[url]?.arriving === source { entries[url]?.lastArrived = Self.arrived(of: source) }
        }
        source.fail()
    }

    /// The number of entries, including those of released sources.
    var count: Int { entries.withLock(\.count) }

    /// Nil if later followers have to wait for the next fetch.
    private func current(_ entry: Entry?, of url: SourceURL) -> ArrivingSource? {
        guard let entry, let source = entry.arriving, source.isUsable,
            !cache.purges.overtook(entry.epoch, sourceURL: url.canonical), entry.times == nil || isFresh(entry.times)
        else { return nil }
        return source
    }

    /// Renditions that begin one after the other may keep a source for longer than it is fresh.
    private func isFresh(_ times: OriginTimes?) -> Bool {
        guard let times else { return false }
        if case .fresh = cache.freshness(fetchedAt: times.fetchedAt, freshFor: times.freshFor) { return true }
        return false
    }

    private static func times(of source: LoadedSource) -> OriginTimes? {
        source.source.origin.map { OriginTimes(fetchedAt: $0.fetchedAt, freshFor: source.storage.freshFor) }
    }

    private static func arrived(of source: ArrivingSource) -> FlightProgress.Arrived? {
        guard let start = source.start else { return nil }
        return (source.count, start.length)
    }

    @discardableResult
    private static func insert(
        _ source: ArrivingSource = ArrivingSource(), of url: SourceURL, _ epoch: Epoch,
        into entries: inout [SourceURL: Entry]
    ) -> ArrivingSource {
        if entries.count >= cleanupThreshold {
            entries = entries.filter { $0.value.arriving != nil || $0.value.loaded != nil }
        }
        entries[url] = Entry(arriving: source, loaded: entries[url]?.loaded, epoch: epoch)
        return source
    }
}
