internal import SystemIO

/// Counters of the cluster since the start, as a snapshot for metrics.
package struct ClusterMetrics: Sendable, Equatable {
    /// Commands sent, those of subscriptions and of the purge stream excluded.
    package var commands: Int64 = 0
    /// Pipelines sent, and the sum of the times until their replies.
    package var roundTrips: Int64 = 0
    package var roundTripTime: Duration = .zero
    /// Errors by ``RedisError/kind``.
    package var errors: [String: Int64] = [:]
    /// Connections opened, over all three links.
    package var connections: Int64 = 0
    package var leasesTaken: Int64 = 0
    /// Leases that expired or were taken over while work went on.
    package var leasesLost: Int64 = 0
    /// Callers that another node's record answered at once.
    package var recordsFound: Int64 = 0
    /// Callers that waited for another node's flight.
    package var flightsFollowed: Int64 = 0
    /// Callers that went on without the cluster.
    package var flightsAlone: Int64 = 0
    /// Messages received on the subscription.
    package var messages: Int64 = 0
    /// Entries of the purge stream applied here.
    package var purgesApplied: Int64 = 0
    /// Purges that this node added to the stream.
    package var purgesAdded: Int64 = 0
    /// Times that everything had to be revalidated because the stream did not reach back.
    package var revalidations: Int64 = 0
    /// Purges made here that wait to be added to the stream.
    package var purgesPending: Int64 = 0
    /// Age of the latest purge when it was applied here, by the clocks of the server and of this host.
    package var purgeLag: Duration = .zero
}

typealias ClusterMeter = Meter<ClusterMetrics>

extension Meter<ClusterMetrics> {
    convenience init() {
        self.init(ClusterMetrics())
    }

    func count(_ error: RedisError) {
        update { $0.errors[error.kind, default: 0] += 1 }
    }

    func count(_ commands: Int, taking time: Duration) {
        update { metrics in
            metrics.commands += Int64(commands)
            metrics.roundTrips += 1
            metrics.roundTripTime += time
        }
    }
}
