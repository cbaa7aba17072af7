package import Ledger

/// The renditions that a purge covers, as all nodes see it.
package enum ClusterPurge: Sendable, Hashable {
    /// Every rendition of this source: its canonical URL, compared byte by byte.
    case url(String)
    /// Every rendition of a source whose canonical URL begins with these bytes.
    case prefix(String)
    /// One rendition by the text of its id.
    case object(String)
    case all

    /// One letter, as it is stored.
    var kind: String {
        switch self {
        case .url: "u"
        case .prefix: "p"
        case .object: "o"
        case .all: "a"
        }
    }

    var argument: String {
        switch self {
        case .url(let text), .prefix(let text), .object(let text): text
        case .all: ""
        }
    }

    init?(kind: String, argument: String) {
        switch kind {
        case "u": self = .url(argument)
        case "p": self = .prefix(argument)
        case "o": self = .object(argument)
        case "a": self = .all
        default: return nil
        }
    }
}

/// A purge as it is recorded for all nodes.
struct RecordedPurge: Sendable, Equatable {
    let scope: ClusterPurge
    /// When it was made: milliseconds since 1970 by the clock of its node; nil if that is unknown.
    let time: Int64?
    /// Identifies a purge that its node had applied before the stream had it; nil for others.
    let token: String?

    init(_ scope: ClusterPurge, time: Int64?, token: String? = nil) {
        self.scope = scope
        self.time = time
        self.token = token
    }
}

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

/// What the owner of the local cache does for the purge stream.
///
/// Each change of the ledger that it gets is committed after those of all earlier calls. So no position is recorded before its purge.
package struct PurgeHandlers: Sendable {
    /// Purges the local cache, durably, and returns what was removed. Work that began before must not be stored after it. The change
    /// records the purge's place in the stream, and belongs to its transaction.
    ///
    /// For a purge that was made earlier, the time is that at which it was made, in milliseconds since 1970: what was fetched or
    /// uploaded later stays.
    ///
    /// Nil if the purge applies only until the next start. The node then does not acknowledge it. The place is not recorded before
    /// the purge is, so that a restart repeats it.
    package let purgeLocalCache: @Sendable (ClusterPurge, _ madeAt: Int64?, @escaping Ledger.Change) async -> PurgeCounts?
    /// Has the origin of every alias asked before the alias is used again, and drops what a former process has not sent to other
    /// nodes: purges were missed, or may have been.
    package let revalidateEverything: @Sendable (MissedPurges) async -> Void
    /// Records a place without a purge.
    package let record: @Sendable (@escaping Ledger.Change) async -> Void

    package init(
        purgeLocalCache:
            @escaping @Sendable (ClusterPurge, _ madeAt: Int64?, @escaping Ledger.Change) async -> PurgeCounts?,
        revalidateEverything: @escaping @Sendable (MissedPurges) async -> Void,
        record: @escaping @Sendable (@escaping Ledger.Change) async -> Void
    ) {
        self.purgeLocalCache = purgeLocalCache
        self.revalidateEverything = revalidateEverything
        self.record = record
    }
}
