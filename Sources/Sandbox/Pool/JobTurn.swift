package import Media
internal import Synchronization

/// The urgency of a queued job, whether it has started, and its progress. The callers that wait for the job share it with the pool.
/// Any thread.
package final class JobTurn: Sendable {
    private let level: Atomic<Int>
    private let began = Atomic(false)
    private let latest = Mutex<FrameProgress?>(nil)

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

    /// The frames that the worker has encoded; nil if it has not reported any. The number never falls: a second attempt at a result
    /// that was too large adds nothing until it has come further than the first.
    package var progress: FrameProgress? { latest.withLock { $0 } }

    /// Records a report of the worker.
    package func report(_ progress: FrameProgress) {
        latest.withLock { latest in
            if progress.done >= latest?.done ?? 0 { latest = progress }
        }
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
