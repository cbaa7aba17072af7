/// What a purge removed: on one node, or on several together.
package struct PurgeCounts: Sendable, Equatable {
    /// Renditions.
    package var purged: Int64
    /// Bytes of their files.
    package var bytes: Int64

    package init(purged: Int64, bytes: Int64) {
        self.purged = purged
        self.bytes = bytes
    }

    /// Adds counts of another node, up to the largest number.
    mutating func add(_ other: PurgeCounts) {
        purged = Self.sum(purged, other.purged)
        bytes = Self.sum(bytes, other.bytes)
    }

    private static func sum(_ one: Int64, _ other: Int64) -> Int64 {
        let (sum, isOver) = one.addingReportingOverflow(max(0, other))
        return isOver ? .max : sum
    }
}

/// The result of a purge in the cluster.
package struct ClusterPurgeReport: Sendable, Equatable {
    /// The sums over the nodes that acknowledged.
    package let counts: PurgeCounts
    /// Live nodes; if the server cannot be reached, the number at the latest look.
    package let nodes: Int
    /// Nodes that have durably applied the purge's entry in the stream. Where it equals ``nodes``, no node gives out older bytes from now
    /// on. Zero if the stream does not have the entry yet: this node has applied the purge, and the others will.
    package let acknowledged: Int
    /// Identifies the purge for ``Cluster/purgeProgress(of:)``, on every node as soon as the stream has it.
    package let id: String
}
