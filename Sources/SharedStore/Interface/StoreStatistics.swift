package import SystemIO

/// The counters of a ``SharedStore`` since its start, and its present state.
package struct StoreStatistics: Sendable {
    /// Calls of one operation that were sent.
    package struct Calls: Sendable, Equatable {
        package let count: Int
        /// The sum of their durations, retries included.
        package let time: Duration
    }

    /// Calls that were sent, by operation. Every operation is present.
    package let calls: [StoreOperation: Calls]
    /// Calls that failed, by ``StoreError/label``.
    package let failures: [String: Int]
    /// Lookups that found a rendition.
    package let hits: Int
    /// Lookups that found none.
    package let misses: Int
    /// Attempts after the first one of a call.
    package let retries: Int
    /// Renditions stored.
    package let stored: Int
    /// Renditions deleted, by the queue and by pruning.
    package let deleted: Int
    /// Bytes of renditions that lookups received.
    package let bytesReceived: Int
    /// Bytes of renditions stored.
    package let bytesSent: Int
    /// The state of the circuit breaker.
    package let breaker: BreakerPhase
    /// The number of times that the circuit breaker opened or closed.
    package let transitions: Int
    /// Writes in the outbox.
    package let queuedWrites: Int
    /// Bytes of renditions in the outbox.
    package let queuedBytes: Int
    /// Writes dropped because the queue was full, because they could not be written to disk, or because they can never succeed.
    package let droppedWrites: Int

    init(_ counters: StoreMeter.Counters, breaker: BreakerPhase, outbox: OutboxMeter.Gauges) {
        calls = Dictionary(
            uniqueKeysWithValues: StoreOperation.allCases.map { operation in
                let tally = counters.tallies[operation] ?? StoreMeter.Tally()
                return (operation, Calls(count: tally.calls, time: tally.time))
            })
        failures = counters.failures
        hits = counters.hits
        misses = counters.misses
        retries = counters.retries
        stored = counters.stored
        deleted = counters.deleted
        bytesReceived = counters.bytesReceived
        bytesSent = counters.bytesSent
        self.breaker = breaker
        transitions = counters.transitions
        queuedWrites = outbox.entries
        queuedBytes = outbox.bytes
        droppedWrites = outbox.dropped
    }
}
