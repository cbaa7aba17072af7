package import Media
internal import Synchronization
package import SystemIO

/// The clients and the urgency of a queued job, whether it has started, and its progress. The pool shares it with the callers
/// that wait for the job. Thread-safe.
package final class JobTurn: Sendable {
    /// A client that waits for the job.
    struct Claim: Sendable, Equatable {
        /// Nil for an unknown client.
        let client: ClientNetwork?
        /// The level of the client's most urgent request.
        var level: Int
    }

    private struct State {
        var urgency: Urgency
        var claims: [Claim] = []
        var hasBegun = false
        var progress: FrameProgress?
        var cpu = Duration.zero

        mutating func add(_ other: Urgency, _ client: ClientNetwork?) {
            if other < urgency { urgency = other }
            if other.isBackground { return }
            if let index = claims.firstIndex(where: { $0.client == client }) {
                claims[index].level = min(claims[index].level, other.level)
            } else if claims.count < JobTurn.maxClaims {
                claims.append(Claim(client: client, level: other.level))
            }
        }
    }

    /// The maximum number of clients in whose turns the job may run. Further clients wait for a turn of one of these.
    private static let maxClaims = 8

    private let state: Mutex<State>

    /// - Parameter client: The client that waits for the job; nil if it is unknown, or if no client waits.
    package init(_ urgency: Urgency = .visitor, for client: ClientNetwork? = nil) {
        var initial = State(urgency: urgency)
        initial.add(urgency, client)
        state = Mutex(initial)
    }

    /// The urgency of the most urgent request.
    package var urgency: Urgency { state.withLock { $0.urgency } }

    /// The clients that wait for the job; empty if none does.
    var claims: [Claim] { state.withLock { $0.claims } }

    /// The clients of ``claims``.
    package var clients: [ClientNetwork?] { claims.map(\.client) }

    /// Records another request for the job. The urgency never decreases.
    package func raise(to urgency: Urgency, for client: ClientNetwork? = nil) {
        state.withLock { $0.add(urgency, client) }
    }

    /// Whether a worker has taken the job, which then runs to its end.
    package var hasBegun: Bool { state.withLock { $0.hasBegun } }

    /// Records that a worker has taken the job.
    package func begin() {
        state.withLock { $0.hasBegun = true }
    }

    /// The worker's progress; nil before its first report. The number of frames never decreases: if a result is too large, the
    /// second attempt counts only once it has passed the first.
    package var progress: FrameProgress? { state.withLock { $0.progress } }

    /// Stores the worker's latest progress.
    package func report(_ progress: FrameProgress) {
        state.withLock { state in
            if progress.done >= state.progress?.done ?? 0 { state.progress = progress }
        }
    }

    /// The CPU time of the job's workers that have ended, in whatever way.
    package var cpu: Duration { state.withLock { $0.cpu } }

    /// Adds the CPU time of a worker.
    func spend(_ cpu: Duration) {
        state.withLock { $0.cpu += cpu }
    }
}

/// The urgency of a job: 0 is the most urgent, 7 the least, like the parameter `u` of RFC 9218 section 4.1.
package struct Urgency: Sendable, Hashable, Comparable {
    /// 0…7; lower levels run first.
    package let level: Int
    /// Whether no client waits for the job. Such a job runs only when no other job waits, whatever its level.
    package let isBackground: Bool

    /// Creates the urgency of a client's request. Clamps the level to 0…7.
    package init(level: Int) {
        self.init(level: min(max(level, 0), 7), isBackground: false)
    }

    private init(level: Int, isBackground: Bool) {
        self.level = level
        self.isBackground = isBackground
    }

    /// Orders more urgent jobs first.
    package static func < (left: Urgency, right: Urgency) -> Bool {
        left.isBackground == right.isBackground ? left.level < right.level : right.isBackground
    }

    /// A client waits for the job: the default of RFC 9218.
    package static let visitor = Urgency(level: 3)
    /// A client was answered with a stale rendition, which the job renews.
    package static let renewal = Urgency(level: 6, isBackground: true)
    /// No client has asked yet.
    package static let prewarm = Urgency(level: 7, isBackground: true)
}
