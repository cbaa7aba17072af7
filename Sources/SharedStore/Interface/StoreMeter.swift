internal import Synchronization

/// The counters of a ``SharedStore`` since its start. Any thread.
final class StoreMeter: Sendable {
    /// Calls of one operation, and the time they took.
    struct Tally: Sendable {
        var calls = 0
        var time = Duration.zero
    }

    struct Counters: Sendable {
        var tallies: [StoreOperation: Tally] = [:]
        var failures: [String: Int] = [:]
        var hits = 0
        var misses = 0
        var retries = 0
        var transitions = 0
        var stored = 0
        var deleted = 0
        var bytesReceived = 0
        var bytesSent = 0
    }

    private let counters = Mutex(Counters())

    var snapshot: Counters { counters.withLock { $0 } }

    /// Counts a call that was sent, with all its attempts.
    func countEnd(_ operation: StoreOperation, after time: Duration) {
        counters.withLock { counters in
            counters.tallies[operation, default: Tally()].calls += 1
            counters.tallies[operation, default: Tally()].time += time
        }
    }

    func countFailure(_ error: StoreError) {
        counters.withLock { $0.failures[error.label, default: 0] += 1 }
    }

    func countRetry() {
        counters.withLock { $0.retries += 1 }
    }

    func countTransition() {
        counters.withLock { $0.transitions += 1 }
    }

    func countHit(bytes: Int) {
        counters.withLock { counters in
            counters.hits += 1
            counters.bytesReceived += bytes
        }
    }

    func countMiss() {
        counters.withLock { $0.misses += 1 }
    }

    func countStored(bytes: Int) {
        counters.withLock { counters in
            counters.stored += 1
            counters.bytesSent += bytes
        }
    }

    func countDeleted() {
        counters.withLock { $0.deleted += 1 }
    }
}
