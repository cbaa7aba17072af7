internal import Synchronization

/// The urgency of a queued job and whether it has started. The callers that wait for the job share it with the pool; any thread
/// may use it.
package final class JobTurn: Sendable {
    private let level: Atomic<Int>
    private let began = Atomic(false)

    package init(_ urgency: Urgency = .visitor) {
        level = Atomic(urgency.level)
    }

    package var urgency: Urgency { Urgency(level: level.load(ordering: .relaxed)) }

    /// Raises the urgency to that of the most urgent caller. It never falls.
    package func raise(to urgency: Urgency) {
        level.min(urgency.level, ordering: .relaxed)
    }

    /// Whether a worker has the job. From then on it runs to its end.
    package var hasBegun: Bool { began.load(ordering: .acquiring) }

    /// Records that a worker has the job.
    package func begin() {
        began.store(true, ordering: .releasing)
    }
}

/// The urgency of a job: 0 is the most urgent, 7 the least, as the parameter `u` of RFC 9218 section 4.1.
package struct Urgency: Sendable, Hashable {
    /// 0…7; lower levels run first.
    package let level: Int

    /// Clamps a level to 0…7.
    package init(level: Int) {
        self.level = min(max(level, 0), 7)
    }

    /// A client waits for the job: the default of RFC 9218.
    package static let visitor = Urgency(level: 3)
    /// A client was answered with a stale rendition, which the job renews.
    package static let renewal = Urgency(level: 6)
    /// No client has asked yet.
    package static let prewarm = Urgency(level: 7)

    /// Whether no client waits for the job.
    package var isBackground: Bool { level >= Self.renewal.level }
}
