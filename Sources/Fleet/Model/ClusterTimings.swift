/// The times of the cluster's protocols.
package struct ClusterTimings: Sendable {
    /// The longest wait of a caller for the server in one step: a look-up with its lease, or the end of a flight.
    package var commandLimit: Duration = .milliseconds(250)
    /// The lifetime of a lease without renewal, after which the flights of a dead node are taken over.
    package var leaseTime: Duration = .milliseconds(2500)
    /// The age at which a lease is due for renewal, and the period of the check. Two periods and a command are shorter than the
    /// lease.
    package var renewInterval: Duration = .milliseconds(800)
    /// The period in which a caller that waits for another node's flight polls, in case the message is lost.
    package var pollInterval: Duration = .milliseconds(500)
    /// The time after its last heartbeat during which a node counts as live.
    package var nodeLifetime: Duration = .seconds(9)
    /// The period of heartbeats. With a look at the other nodes at some of them, they are the only commands of an idle
    /// node, except for the read of the purge stream.
    package var beatInterval: Duration = .seconds(3)
    /// The number of heartbeats between two looks at which other nodes are live.
    package var beatsPerLook = 4
    /// The longest wait of a purge for the other nodes.
    package var purgeLimit: Duration = .seconds(2)
    /// The longest wait of one read of the purge stream for entries.
    package var blockTime: Duration = .seconds(2)
    /// The longest wait of a node that leaves for purges that it has made alone to reach the stream.
    package var leaveLimit: Duration = .seconds(3)
    /// The time without the cluster after which aliases are doubted, because purges of other nodes do not arrive.
    package var aloneLimit: Duration = .seconds(600)
    /// The lifetime of a claim on a prewarm entry without renewal.
    package var claimTime: Duration = .seconds(6)

    package init() {}

    /// The limit of commands that read many entries, or wait behind a command that does.
    var longLimit: Duration { commandLimit * 4 }
}
