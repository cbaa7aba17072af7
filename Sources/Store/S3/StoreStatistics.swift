package import SystemIO

/// The counters of a ``SharedStore`` since its start, and its present state.
package struct StoreStatistics: Sendable {
    /// Calls of one operation that were sent.
    package struct Calls: Sendable, Equatable {
        package var count = 0
        /// The sum of their durations, retries included.
        package var time = Duration.zero
    }

    /// Calls that were sent, by operation. Every operation is present.
    package var calls = Dictionary(uniqueKeysWithValues: StoreOperation.allCases.map { ($0, Calls()) })
    /// Calls that failed, by ``StoreError/label``.
    package var failures: [String: Int] = [:]
    /// Lookups that found a rendition.
    package var hits = 0
    /// Lookups that found none.
    package var misses = 0
    /// Attempts after the first one of a call.
    package var retries = 0
    /// Bytes of renditions that lookups received.
    package var bytesReceived = 0
    /// Bytes of renditions stored.
    package var bytesSent = 0
    /// The state of the circuit breaker.
    package var breaker = BreakerPhase.closed
    /// Writes in the outbox.
    package var queuedWrites = 0
    /// Bytes of renditions in the outbox.
    package var queuedBytes = 0
    /// Writes dropped because the queue was full, because they could not be written to disk, or because they can never succeed.
    package var droppedWrites = 0
}

typealias StoreMeter = Meter<StoreStatistics>

extension Meter<StoreStatistics> {
    convenience init() {
        self.init(StoreStatistics())
    }

    /// Counts a call that was sent, with all its attempts.
    func countEnd(_ operation: StoreOperation, after time: Duration) {
        update { statistics in
            statistics.calls[operation]?.count += 1
            statistics.calls[operation]?.time += time
        }
    }

    func countFailure(_ error: StoreError) {
        update { $0.failures[error.label, default: 0] += 1 }
    }
}
