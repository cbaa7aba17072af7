internal import Synchronization

/// Combines events of connections, breaker and purge stream into one state, and reports each change of state once.
final class StateReporter: Sendable {
    private struct State {
        /// The reasons to work alone, by source.
        var reasons: [Source: RedisError] = [.stream: .unavailable("the cluster was not joined yet")]
        var reported: String?
        /// Whether it was reported that the subscription is refused.
        var isDeaf = false
    }

    /// The parts that can each make a node work alone.
    enum Source: Int, CaseIterable {
        case commands
        case breaker
        case stream
    }

    private let state = Mutex(State())
    private let server: String
    private let report: @Sendable (ClusterEvent) -> Void

    init(server: String, onChange: @escaping @Sendable (ClusterEvent) -> Void) {
        self.server = server
        report = onChange
    }

    /// Records that a part works, or why it does not.
    func set(_ source: Source, _ error: RedisError?) {
        let event = state.withLock { state -> ClusterEvent? in
            state.reasons[source] = error
            let reason = Source.allCases.compactMap { state.reasons[$0] }.first
            // A further failure, or its echo in another part, is not worth a log line.
            let kind = reason == nil ? "shared" : "alone"
            guard state.reported != kind else { return nil }
            // At the start, the first failure or success is the first state.
            if state.reported == nil, error == nil, reason != nil { return nil }
            state.reported = kind
            return reason.map { .alone(server: server, $0) } ?? .shared(server: server)
        }
        if let event { report(event) }
    }

    /// Records that the subscription to messages works, or why it does not. If the server is unreachable, other parts report
    /// that.
    func setSubscription(_ error: RedisError?) {
        let event = state.withLock { state -> ClusterEvent? in
            guard case .refused(let refusal)? = error else {
                if error == nil { state.isDeaf = false }
                return nil
            }
            guard !state.isDeaf, refusal.kind == .authentication else { return nil }
            state.isDeaf = true
            return .deaf(server: server, .refused(refusal))
        }
        if let event { report(event) }
    }
}
