package import Fleet
package import Renditions
internal import Sandbox
internal import Store
internal import SystemIO

extension PrewarmOutcome {
    package typealias Describe = @Sendable (RenditionError) -> PrewarmOutcome
}

/// Brings one entry into the cache at a lower priority than visitors' requests, and retries transient errors.
struct Prewarmer: Sendable {
    let pipeline: @Sendable () -> RenditionPipeline
    let describe: PrewarmOutcome.Describe

    /// How long an entry is retried while the server has no capacity for it.
    private static let capacityTimeout = Duration.seconds(900)

    struct Attempts: Sendable {
        fileprivate var origin = RetryDelays()
        fileprivate var capacity = RetryDelays()
        /// When the server has had no capacity for too long; nil before the first attempt.
        fileprivate var deadline: ContinuousClock.Instant?
    }

    enum Step: Sendable {
        case ended(PrewarmOutcome)
        /// The next attempt is due after a pause.
        case paused(Pause)
    }

    struct Pause: Sendable {
        let duration: Duration
        /// Whether the origin has failed. Otherwise, the server has no capacity.
        let isForOrigin: Bool
    }

    /// Makes one attempt to bring the entry into the cache. Returns nil if the task was cancelled.
    ///
    /// - Parameter retries: Attempts after the first if the origin failed. An attempt for which the server has no capacity
    ///   does not count.
    func attempt(_ entry: PrewarmEntry, retries: Int, _ attempts: inout Attempts) async -> Step? {
        if Task.isCancelled { return nil }
        let pipeline = pipeline()
        let deadline = attempts.deadline ?? ContinuousClock.now + Self.capacityTimeout
        attempts.deadline = deadline
        do throws(RenditionError) {
            let target = try entry.target(pipeline.defaults, pipeline.sources)
            // Negotiation sends the source in place of a sequence that saves too little.
            let alternative = target.rendition.format.isSequence ? Rendition(format: .original) : nil
            let request = RenditionRequest(target.rendition, of: target.url, urgency: .prewarm, alternative: alternative)
            let result = try await pipeline.find(request)
            // The disk takes too long. It may still store this rendition, or the next attempt may be stored.
            if case .unstored(.unavailable) = result.provenance, ContinuousClock.now < deadline {
                return .paused(Pause(duration: attempts.capacity.next(retryAfter: 2), isForOrigin: false))
            }
            return .ended(Self.outcome(result))
        } catch .cancelled {
            return nil
        } catch {
            switch error.retry {
            case .whenServerHasCapacity(let seconds) where ContinuousClock.now < deadline:
                return .paused(Pause(duration: attempts.capacity.next(retryAfter: seconds), isForOrigin: false))
            case .whenOriginRecovers(let seconds) where attempts.origin.attempts < retries:
                return .paused(Pause(duration: attempts.origin.next(retryAfter: seconds), isForOrigin: true))
            case .whenServerHasCapacity, .whenOriginRecovers, .never:
                return .ended(describe(error))
            }
        }
    }

    private static func outcome(_ result: RenditionResult) -> PrewarmOutcome {
        guard result.isStored else { return notStored(result.provenance) }
        let kind: PrewarmOutcome.Kind =
            switch result.provenance {
            case .hit, .stale, .renewed: .hit
            case .stored, .unstored, .collapsed, .shared, .followed: .new
            }
        let facts = RenditionFacts(stored: result.rendition.facts)
        return PrewarmOutcome(kind: kind, bytes: Int(result.rendition.length), sourceBytes: facts?.sourceBytes ?? 0)
    }

    /// The outcome of an entry whose rendition was produced but is not in the cache.
    private static func notStored(_ provenance: RenditionResult.Provenance) -> PrewarmOutcome {
        let cause =
            switch provenance {
            case .unstored(.unwanted): "its origin forbids it"
            case .unstored(let reason): reason.description
            case .shared, .followed: "another node produced it, and the cache of this one could not take it"
            case .hit, .stale, .renewed, .stored, .collapsed: "another request produced it, and could not store it"
            }
        return PrewarmOutcome(code: "not_stored", detail: "The rendition is not stored: \(cause).")
    }
}

/// The delays between attempts of one entry. `Retry-After` can lengthen a delay.
struct RetryDelays: Sendable {
    private static let backoff = Backoff(first: .milliseconds(250), longest: .seconds(30))

    private(set) var attempts = 0

    /// Counts an attempt and returns the delay before the next one.
    ///
    /// - Parameter retryAfter: The seconds of `Retry-After`, which are respected up to five minutes.
    mutating func next(retryAfter: Int?) -> Duration {
        attempts += 1
        return max(Self.backoff.pause(after: attempts), .seconds(min(max(retryAfter ?? 0, 0), 300)))
    }
}
