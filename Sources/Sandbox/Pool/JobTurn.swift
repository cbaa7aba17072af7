internal import Synchronization

/// A job's place among those that wait: how urgent it is, which may change for the better meanwhile, and whether it has
/// begun. Shared by who waits for the job and by the pool; any thread.
package final class JobTurn: Sendable {
    private let level: Atomic<Int>
    private let began = Atomic(false)

    package init(_ urgency: Urgency = .visitor) {
        level = Atomic(urgency.level)
    }

    package var urgency: Urgency { Urgency(level: level.load(ordering: .relaxed)) }

    /// Makes the job as urgent as the most urgent of those who wait for it; never less than it was.
    package func raise(to urgency: Urgency) {
        level.min(urgency.level, ordering: .relaxed)
    }

    /// Whether a worker has it: from here on it goes on to its end.
    package var hasBegun: Bool { began.load(ordering: .acquiring) }

    /// Notes that a worker has it.
    package func begin() {
        began.store(true, ordering: .releasing)
    }
}
