internal import Cache
internal import Fetch
internal import Logging

/// Finds renditions, or has them made: the order on a miss, and what is done with what is stale.
struct RenditionStore: Sendable {
    /// Where an answer came from, for `Cache-Status` (RFC 9211).
    enum Provenance: Sendable, Equatable {
        case hit
        /// Out of date for so many seconds, and being renewed.
        case stale(Int64)
        case stored
        /// Made, but not kept.
        case unstored
        /// Joined work that was in flight.
        case collapsed
    }

    struct Found: Sendable {
        var rendition: CachedRendition
        var provenance: Provenance
        var times = StageTimes()
    }

    let cache: Cache
    let maker: RenditionMaker
    private let flights = FlightTable<AliasKey, Result<Made, Problem>>()
    private let uploads = FlightTable<ObjectID, Result<Made, Problem>>()
    private typealias Made = RenditionMaker.Made

    init(cache: Cache, maker: RenditionMaker) {
        self.cache = cache
        self.maker = maker
    }

    /// What can be answered at once without waiting for anything; nil sends the caller to ``find(_:of:)``.
    func hot(_ key: AliasKey) -> CachedRendition? {
        guard let found = cache.hotAlias(key), case .fresh = cache.freshness(of: found) else { return nil }
        return found
    }

    /// The rendition from the cache, or else made now. Nil when the calling task was cancelled.
    func find(_ rendition: Rendition, of url: SourceURL) async -> Result<Found, Problem>? {
        let key = AliasKey(sourceURL: url.canonical, rendition: rendition.canonicalText)
        let known = await cache.alias(key)
        if let known {
            switch cache.freshness(of: known) {
            case .fresh:
                return .success(Found(rendition: known, provenance: .hit))
            case .stale(let age):
                Task { _ = await make(rendition, of: url, key) }
                return .success(Found(rendition: known, provenance: .stale(age)))
            case .expired:
                break
            }
        }
        guard let landing = await make(rendition, of: url, key) else { return nil }
        return Self.found(landing)
    }

    /// The rendition of an uploaded GIF. Nil when the calling task was cancelled.
    func find(_ rendition: Rendition, of source: Source) async -> Result<Found, Problem>? {
        let id = ObjectID(
            source: source.digest, rendition: rendition.canonicalText, encoderVersion: rendition.encoderVersion)
        if let known = await cache.object(id) { return .success(Found(rendition: known, provenance: .hit)) }
        let maker = maker
        let landing = await uploads.outcome(of: id) {
            await maker.make(rendition, of: source, epoch: maker.cache.epoch(for: nil))
        }
        return landing.map(Self.found)
    }

    private func make(
        _ rendition: Rendition, of url: SourceURL, _ key: AliasKey
    ) async -> FlightTable<AliasKey, Result<Made, Problem>>.Landing? {
        let cache = cache
        let maker = maker
        return await flights.outcome(of: key) {
            // Looked up again inside the flight: one that landed just now may have brought it.
            let known = await cache.alias(key)
            if let known, case .fresh = cache.freshness(of: known) {
                return .success(Made(rendition: known, isStored: true, times: StageTimes()))
            }
            return await maker.make(rendition, of: url, known: known)
        }
    }

    private static func found<Key>(_ landing: FlightTable<Key, Result<Made, Problem>>.Landing) -> Result<Found, Problem> {
        landing.outcome.map { made in
            let provenance: Provenance = landing.joined ? .collapsed : made.isStored ? .stored : .unstored
            return Found(rendition: made.rendition, provenance: provenance, times: made.times)
        }
    }
}
