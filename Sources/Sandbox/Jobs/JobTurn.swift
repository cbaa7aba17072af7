package import Media
internal import Synchronization
package import SystemIO

/// The clients and the urgency of a queued job, whether it has started, and its progress. The callers that wait for the job share it
/// with the pool. Any thread.
package final class JobTurn: Sendable {
    /// A client that waits for the job.
    struct Claim: Sendable, Equatable {
        /// Nil for an unknown client.
        let client: ClientNetwork?
        /// The level of its most urgent request.
        var level: Int
    }

    private struct State {
        var urgency: Urgency
        var claims: [Claim] = []

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

    /// The number of clients by whose turns the job may run. Further clients wait for the turn of one of these.
    private static let maxClaims = 8

    private let state: Mutex<State>
    private let began = Atomic(false)
    private let latest = Mutex<FrameProgress?>(nil)

    /// - Parameter client: The client that waits for the job; nil for an unknown one, or if no client waits.
    package init(_ urgency: Urgency = .visitor, for client: ClientNetwork? = nil) {
        var initial = State(urgency: urgency)
        initial.add(urgency, client)
        state = Mutex(initial)
    }

    /// The urgency of the most urgent request.
    package var urgency: Urgency { state.withLock { $0.urgency } }

    /// The clients that wait for the job; empty if none does.
    var claims: [Claim] { state.withLock { $0.claims } }

    /// Records another request for the job. The urgency never falls.
    package func raise(to urgency: Urgency, for client: ClientNetwork? = nil) {
        state.withLock { $0.add(urgency, client) }
    }

    /// Whether a worker has the job. From then on it runs to its end.
    package var hasBegun: Bool { began.load(ordering: .acquiring) }

    /// Records that a worker has the job.
    package func begin() {
        began.store(true, ordering: .releasing)
    }

    /// The frames that the worker has encoded; nil if it has not reported any. The number never falls: a second attempt at a result
    /// that was too large adds nothing until it has come further than the first.
    package var progress: FrameProgress? { latest.withLock { $0 } }

    /// Stores the worker's latest progress.
    package func report(_ progress: FrameProgress) {
        latest.withLock { latest in
            if progress.done >= latest?.done ?? 0 { latest = progress }
        }
    }
}

/// The urgency of a job: 0 is the most urgent, 7 the least, as the parameter `u` of RFC 9218 section 4.1.
package struct Urgency: Sendable, Hashable, Comparable {
    /// 0…7; lower levels run first.
    package let level: Int
    /// Whether no client waits for the job. Such jobs run when no other one waits, whatever their level.
    package let isBackground: Bool

    /// The urgency of a client's request. Clamps the level to 0…7.
    package init(level: Int) {
        self.init(level: min(max(level, 0), 7), isBackground: false)
    }

    private init(level: Int, isBackground: Bool) {
        self.level = level
        self.isBackground = isBackground
    }

    /// Orders the more urgent one first.
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
