internal import SystemIO

/// A snapshot of the cluster's counters since startup, for metrics.
package struct ClusterMetrics: Sendable, Equatable {
    /// Commands sent, excluding those on the subscription and purge stream connections.
    package var commands: Int64 = 0
    /// Pipelines sent, and their total round-trip time.
    package var roundTrips: Int64 = 0
    package var roundTripTime: Duration = .zero
    /// Errors by ``RedisError/kind``.
    package var errors: [String: Int64] = [:]
    /// Connections opened, over all three links.
    package var connections: Int64 = 0
    package var leasesTaken: Int64 = 0
    /// Leases that expired or were taken over while work went on.
    package var leasesLost: Int64 = 0
    /// Callers that found another node's record at once.
    package var recordsFound: Int64 = 0
    /// Callers that waited for another node's flight.
    package var flightsFollowed: Int64 = 0
    /// Callers that went on without the cluster.
    package var flightsAlone: Int64 = 0
    /// Purge stream entries that this node has applied.
    package var purgesApplied: Int64 = 0
    /// Purges that this node added to the stream.
    package var purgesAdded: Int64 = 0
    /// Full revalidations, each because the stream did not reach back to this node's position.
    package var revalidations: Int64 = 0
    /// Purges made on this node and not yet added to the stream.
    package var purgesPending: Int64 = 0
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
