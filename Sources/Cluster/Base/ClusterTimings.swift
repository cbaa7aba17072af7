/// The times of the cluster's protocols.
package struct ClusterTimings: Sendable {
    /// The longest that a caller waits for the server in one step: a look-up with its lease, or the end of a flight.
    package var commandLimit: Duration = .milliseconds(250)
    /// How long a lease lasts without renewal: a dead node's flights are taken over after that.
    package var leaseTime: Duration = .milliseconds(2500)
    package var renewInterval: Duration = .milliseconds(800)
    /// How often a caller that waits for another node's flight looks, in case the message was lost.
    package var pollInterval: Duration = .milliseconds(500)
    /// How long a node counts as live without a heartbeat.
    package var nodeLifetime: Duration = .seconds(6)
    package var beatInterval: Duration = .seconds(2)
    /// How long a purge waits for the other nodes.
    package var purgeLimit: Duration = .seconds(2)
    /// How long one read of the purge stream waits for entries.
    package var blockTime: Duration = .seconds(2)
    /// How long a claimed prewarm entry stays with a node that does not renew the claim.
    package var claimTime: Duration = .seconds(6)

    package init() {}
}
