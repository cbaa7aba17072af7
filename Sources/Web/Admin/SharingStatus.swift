package import Fleet
package import Store
internal import SystemIO

/// The state of the engines that nodes share, as `GET /cache` reports it.
package struct SharingStatus: Sendable {
    package struct Store: Codable, Sendable {
        /// Whether lookups are sent to the store: false while its circuit breaker is open.
        package let available: Bool
        /// Writes that wait to be sent, and their bytes.
        package let queued: Int
        package let queuedBytes: Int
    }

    package struct Cluster: Codable, Sendable {
        /// Whether this node shares its work now.
        package let shared: Bool
        package let node: String
        /// The number of live nodes at the last check.
        package let nodes: Int
        /// Misses that this node runs for the cluster.
        let leases: Int
        /// Purges that wait to be sent to the other nodes.
        package let pendingPurges: Int64
        /// The live nodes.
        package let members: [Member]

        /// A live node.
        package struct Member: Codable, Sendable {
            package let node: String
            /// The latest purge up to which the node has applied all purges.
            let position: String
            /// The time between that purge and the latest one that any node has applied, in seconds; 0 if they are the same,
            /// and before the first purge of a cluster has reached the node.
            package let lag: Double

            /// - Parameter latest: The latest purge that any node has applied.
            init(_ live: LiveNode, latest: StreamID) {
                node = live.name
                position = live.position.description
                let milliseconds = Int64(clamping: latest.milliseconds) - Int64(clamping: live.position.milliseconds)
                // The first entry of a stream has no time.
                lag = live.position.milliseconds > 0 ? Double(max(0, milliseconds)) / 1000 : 0
            }
        }
    }

    let store: Store?
    let cluster: Cluster?

    package init(store: SharedStore?, cluster: Fleet.Cluster?) async {
        let statistics = store?.statistics
        let look = await cluster?.liveNodes()
        let members = look.map { look in look.nodes.map { Cluster.Member($0, latest: look.latest) } }
        self.store = statistics.map {
            Store(available: $0.breaker == .closed, queued: $0.queuedWrites, queuedBytes: $0.queuedBytes)
        }
        self.cluster = cluster.map {
            Cluster(
                shared: $0.isSharing, node: $0.name, nodes: $0.nodeCount, leases: $0.leaseCount,
                pendingPurges: $0.metrics.purgesPending, members: members ?? [])
        }
    }
}
