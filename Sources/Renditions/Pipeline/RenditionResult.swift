package import Store

/// A rendition and how the pipeline obtained it.
package struct RenditionResult: Sendable {
    package var rendition: CachedRendition
    package var provenance: Provenance
    /// Whether HTTP caches may store a response with it. False if the origin forbids it, or if the source was purged while the
    /// rendition was produced.
    package var isStorable: Bool
    /// Whether the cache contains the rendition after the request, even if another request caused the work.
    package let isStored: Bool
    package var times: StageTimes

    /// Where a rendition came from.
    package enum Provenance: Sendable, Equatable {
        /// The cache had it, and it is fresh.
        case hit
        /// The cache had it. It expired the given number of seconds ago and is being renewed.
        case stale(Int64)
        /// The cache had it, and the origin confirmed it now.
        case renewed
        /// It was produced now, or found under another source with the same bytes, and is stored.
        case stored
        /// It was produced now and is not stored.
        case unstored(UnstoredReason)
        /// Another request had caused the work already.
        case collapsed
        /// It was produced by another node earlier, and is stored here now.
        case shared
        /// The request waited for another node that produced it.
        case followed
    }

    /// - Parameter reason: Why the cache does not have the rendition; nil if it does.
    private init(
        _ rendition: CachedRendition, _ provenance: Provenance, unstored reason: UnstoredReason?, _ times: StageTimes
    ) {
        self.rendition = rendition
        self.provenance = provenance
        self.times = times
        isStored = reason == nil
        isStorable = reason != .unwanted && reason != .purged
    }

    /// A rendition that the cache has, unless the provenance says otherwise.
    init(_ rendition: CachedRendition, _ provenance: Provenance, times: StageTimes = StageTimes()) {
        var reason: UnstoredReason?
        if case .unstored(let stated) = provenance { reason = stated }
        self.init(rendition, provenance, unstored: reason, times)
    }

    /// A rendition from another node, as stored in the local cache. If it is not stored, the provenance still says that no
    /// conversion took place here.
    init(_ outcome: PublishOutcome, from provenance: Provenance, times: StageTimes = StageTimes()) {
        var reason: UnstoredReason?
        if case .unstored(_, let stated) = outcome { reason = stated }
        self.init(outcome.rendition, provenance, unstored: reason, times)
    }

    /// The result of a flight for a caller, who joined it in progress or started it.
    init(_ produced: RenditionResult, joined: Bool) {
        self = produced
        if joined { provenance = .collapsed }
    }
}

/// The durations of the stages of a miss.
package struct StageTimes: Sendable {
    /// From the submission of the job until a worker took it.
    package var queue: Duration = .zero
    package var fetch: Duration = .zero
    package var transcode: Duration = .zero
    /// The worker's processor time, summed over its threads.
    package var cpu: Duration = .zero
}
