internal import Cache
internal import Fetch
internal import Synchronization

/// The sources that are being fetched or in memory, for requests that follow their bytes.
///
/// A follower may come before the fetch: it reserves a place that the next fetch of the source takes. Any thread; lives as long
/// as the process.
final class SourceArrivals: Sendable {
    private struct Entry {
        weak var source: ArrivingSource?
        /// Noted before the origin is asked.
        let epoch: Epoch
        /// What had arrived when the fetch failed. The source is released soon after that.
        var lastArrived: FlightProgress.Arrived?
    }

    private let entries = Mutex<[SourceURL: Entry]>([:])
    /// The number of dictionary entries at which those of released sources are removed.
    private static let cleanupThreshold = 64

    /// Returns the source that is arriving or in memory, or one that the next fetch fills.
    ///
    /// The caller holds the returned value as long as it follows. A source that was purged since its fetch began is not returned.
    func follow(_ url: SourceURL, in cache: Cache) -> ArrivingSource {
        entries.withLock { entries in
            if let entry = entries[url], let source = entry.source, source.isUsable,
                !cache.isPurged(url.canonical, since: entry.epoch)
            {
                return source
            }
            return Self.insert(url, cache.epoch(for: url.canonical), into: &entries)
        }
    }

    /// Returns the source that a new fetch fills: the one that followers have reserved, or a new one.
    ///
    /// - Parameter epoch: Noted before the origin is asked.
    func open(_ url: SourceURL, epoch: Epoch, in cache: Cache) -> ArrivingSource {
        entries.withLock { entries in
            if let entry = entries[url], let source = entry.source, source.isUsable,
                !cache.isPurged(url.canonical, since: entry.epoch), source.claim()
            {
                return source
            }
            let source = Self.insert(url, epoch, into: &entries)
            _ = source.claim()
            return source
        }
    }

    /// Makes later followers wait for the next fetch. Present ones keep the source.
    func remove(_ source: ArrivingSource, of url: SourceURL) {
        entries.withLock { entries in
            if entries[url]?.source === source { entries[url] = nil }
        }
    }

    /// Ends a source whose fetch has failed.
    func fail(_ source: ArrivingSource, of url: SourceURL) {
        entries.withLock { entries in
            if entries[url]?.source === source { entries[url]?.lastArrived = Self.arrived(of: source) }
        }
        source.fail()
    }

    /// The bytes of a source that have arrived, or had arrived before its fetch failed, and its size if the origin declared it; nil
    /// before the first bytes.
    func arrived(_ url: SourceURL) -> FlightProgress.Arrived? {
        let (source, last) = entries.withLock { ($0[url]?.source, $0[url]?.lastArrived) }
        return source.flatMap { Self.arrived(of: $0) } ?? last
    }

    private static func arrived(of source: ArrivingSource) -> FlightProgress.Arrived? {
        guard let start = source.start else { return nil }
        return (source.count, start.length)
    }

    /// The number of entries, including those of released sources.
    var count: Int { entries.withLock(\.count) }

    private static func insert(_ url: SourceURL, _ epoch: Epoch, into entries: inout [SourceURL: Entry]) -> ArrivingSource {
        if entries.count >= cleanupThreshold { entries = entries.filter { $0.value.source != nil } }
        let source = ArrivingSource()
        entries[url] = Entry(source: source, epoch: epoch)
        return source
    }
}
