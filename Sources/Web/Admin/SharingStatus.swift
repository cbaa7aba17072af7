/// The state of the engines that nodes share, as `GET /cache` reports it.
package struct SharingStatus: Sendable {
    package struct Store: Codable, Sendable {
        /// Whether look-ups are sent to the store: false while its circuit breaker is open.
        let available: Bool
        /// Writes that wait to be sent, and their bytes.
        let queued: Int
        let queuedBytes: Int

        package init(available: Bool, queued: Int, queuedBytes: Int) {
            self.available = available
            self.queued = queued
            self.queuedBytes = queuedBytes
        }
    }

    package struct Cluster: Codable, Sendable {
        /// Whether this node shares its work now.
        let shared: Bool
        let node: String
        /// Live nodes at the last look.
        let nodes: Int
        /// Misses that this node runs for the cluster.
        let leases: Int
        /// Purges that wait to be sent to the other nodes.
        let pendingPurges: Int64
        /// The live nodes.
        let members: [Member]

        /// A live node.
        package struct Member: Codable, Sendable {
            let node: String
            /// The latest purge that it has applied, with all before it.
            let position: String
            /// The time between that purge and the latest that any node has applied, in seconds; 0 if that is the same.
            let lag: Double

            package init(node: String, position: String, lag: Double) {
                self.node = node
                self.position = position
                self.lag = lag
            }
        }

        package init(shared: Bool, node: String, nodes: Int, leases: Int, pendingPurges: Int64, members: [Member]) {
            self.shared = shared
            self.node = node
            self.nodes = nodes
            self.leases = leases
            self.pendingPurges = pendingPurges
            self.members = members
        }
    }

    let store: Store?
    let cluster: Cluster?

    package init(store: Store?, cluster: Cluster?) {
        self.store = store
        self.cluster = cluster
    }
}
