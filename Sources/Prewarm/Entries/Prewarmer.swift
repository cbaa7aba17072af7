internal import Fleet
internal import Renditions
internal import Sandbox
internal import Store
internal import SystemIO

/// Brings one entry into the cache at a lower priority than visitors' requests, and retries transient errors.
struct Prewarmer: Sendable {
    /// Returns the pipeline of the current settings.
    let pipeline: @Sendable () -> RenditionPipeline
    let describe: PrewarmOutcome.Describe

    /// How long an entry is retried while the server has no capacity for it.
    private static let capacityTimeout = Duration.seconds(900)

    /// Returns the outcome of the entry; nil if the task was cancelled.
    ///
    /// - Parameter retries: Attempts after the first if the origin failed. An attempt for which the server has no capacity
    ///   does not count.
    func warm(_ entry: PrewarmEntry, retries: Int) async -> PrewarmOutcome? {
        let target: PrewarmEntry.Target
        do throws(RenditionError) {
            let pipeline = pipeline()
            target = try entry.target(pipeline.defaults, pipeline.sources)
        } catch {
            return describe(error)
        }
        var origin = RetryDelays()
        var capacity = RetryDelays()
        let deadline = ContinuousClock.now + Self.capacityTimeout
        while !Task.isCancelled {
            let failure: RenditionError
            do throws(RenditionError) {
                // Negotiation sends the source in place of a sequence that saves too little.
                let alternative = target.rendition.format.isSequence ? Rendition(format: .original) : nil
                let request = RenditionRequest(
                    target.rendition, of: target.url, urgency: .prewarm, alternative: alternative)
                return Self.outcome(try await pipeline().find(request))
            } catch .cancelled {
                return nil
            } catch {
                failure = error
            }
            let pause: Duration
            switch failure.retry {
            case .whenServerHasCapacity(let seconds) where ContinuousClock.now < deadline:
                pause = capacity.next(retryAfter: seconds)
            case .whenOriginRecovers(let seconds) where origin.attempts < retries:
                pause = origin.next(retryAfter: seconds)
            case .whenServerHasCapacity, .whenOriginRecovers, .never:
                return describe(failure)
            }
            do {
                try await Task.sleep(for: pause)
            } catch {
                return nil
            }
        }
        return nil
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
