internal import Cache
internal import Fetch
internal import Sandbox

/// Sees to it that one entry is in the cache: finds it or has it made, after all that visitors ask for, and tries again
/// what may go better later.
struct Prewarmer: Sendable {
    /// The store of the moment: a new one comes with new settings.
    let store: @Sendable () -> RenditionStore

    /// How long an entry waits for a server that has no room, before it counts as failed.
    private static let patience = Duration.seconds(900)

    /// What comes of the entry; nil when the task was cancelled.
    ///
    /// - Parameter retries: Attempts after the first where the origin failed. That this server has no room for it now is
    ///   no attempt.
    func warm(_ entry: PrewarmEntry, retries: Int) async -> PrewarmOutcome? {
        let target: (rendition: Rendition, url: SourceURL)
        do throws(Problem) {
            target = try entry.target()
        } catch {
            return PrewarmOutcome(error)
        }
        var origin = Backoff()
        var room = Backoff()
        let deadline = ContinuousClock.now + Self.patience
        while !Task.isCancelled {
            let problem: Problem
            switch await store().find(target.rendition, of: target.url, urgency: .prewarm) {
            case nil: return nil
            case .success(let found)?: return Self.outcome(found)
            case .failure(let failure)?: problem = failure
            }
            let pause: Duration
            switch problem.status {
            case 429 where ContinuousClock.now < deadline, 503 where ContinuousClock.now < deadline:
                pause = room.next(retryAfter: problem.retryAfter)
            case 502, 504:
                guard origin.attempts < retries else { return PrewarmOutcome(problem) }
                pause = origin.next(retryAfter: problem.retryAfter)
            default: return PrewarmOutcome(problem)
            }
            do {
                try await Task.sleep(for: pause)
            } catch {
                return nil
            }
        }
        return nil
    }

    private static func outcome(_ found: RenditionStore.Found) -> PrewarmOutcome {
        let kind: PrewarmOutcome.Kind =
            switch found.provenance {
            case .hit, .stale, .renewed: .hit
            case .stored, .unstored, .collapsed: .new
            }
        let facts = RenditionFacts(stored: found.rendition.facts)
        return PrewarmOutcome(kind: kind, bytes: Int(found.rendition.length), sourceBytes: facts?.sourceBytes ?? 0)
    }
}
