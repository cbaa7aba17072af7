package struct ClusterTimings: Sendable {
    /// The longest time that a caller waits for the server in one step: a lookup with its lease, or the end of a flight.
    package var commandLimit: Duration = .milliseconds(250)
    /// The lifetime of a lease without renewal, after which the flights of a dead node are taken over.
    package var leaseTime: Duration = .milliseconds(2500)
    /// The age at which a lease is due for renewal, and the period of the check. Two periods and a command are shorter than the
    /// lease.
    package var renewInterval: Duration = .milliseconds(800)
    /// The interval at which a caller that waits for another node's flight polls, in case the message is lost.
    package var pollInterval: Duration = .milliseconds(500)
    /// The time after its last heartbeat during which a node counts as live.
    package var nodeLifetime: Duration = .seconds(9)
    /// The interval of heartbeats. Apart from these, occasional lookups of the other nodes, and reads of the purge stream, an
    /// idle node sends no commands.
    package var beatInterval: Duration = .seconds(3)
    /// The number of heartbeats between two lookups of the live nodes.
    package var beatsPerLook = 4
    /// The longest time that a purge waits for the other nodes.
    package var purgeLimit: Duration = .seconds(2)
    /// The longest time that one read of the purge stream waits for entries.
    package var blockTime: Duration = .seconds(2)
    /// The longest time that a leaving node waits for its pending purges to reach the stream.
    package var leaveLimit: Duration = .seconds(3)
    /// The time without the cluster after which aliases are doubted, because purges of other nodes do not arrive.
    package var aloneLimit: Duration = .seconds(600)
    /// The lifetime of a claim on a prewarm entry without renewal.
    package var claimTime: Duration = .seconds(6)

    package init() {}

    /// The time limit of commands that read many entries, or that are queued after such a command.
    var longLimit: Duration { commandLimit * 4 }
}
