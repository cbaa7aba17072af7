package import Fleet
internal import Renditions
package import Store
internal import SystemIO

/// The body of the answer to a purge (docs/api.md).
package struct Purged: Codable, Sendable {
    package let purged: Int64
    package let bytes: Int64
    /// Whether every node has applied the purge; nil from a server of an older version.
    package let complete: Bool?
    /// The numbers of live nodes and of those that have applied the purge; left out without a cluster.
    package let nodes: Int?
    package let acknowledged: Int?
    /// Left out without a cluster.
    package let id: String?

    init(_ report: PurgeReport) {
        (purged, bytes, complete, id) = (report.counts.purged, report.counts.bytes, report.isComplete, report.id)
        (nodes, acknowledged) = id == nil ? (nil, nil) : (report.nodes, report.acknowledged)
    }
}

/// The body of `GET /cache` (docs/api.md).
package struct CacheSummary: Codable, Sendable {
    package let objects: Int64
    package let bytes: Int64
    package let aliases: Int64
    package let aliasBytes: Int64
    package let diskBytes: Int64
    package let limitBytes: Int64
    /// Free bytes of the file system; left out if it does not answer.
    package let freeBytes: Int64?
    /// Why nothing is stored, as in `Cache-Status`; left out while renditions are stored.
    package let notStoring: String?
    package let hits: Int64
    package let misses: Int64
    package let evictions: Int64
    package let purged: Int64
    package let corrupt: Int64
    package let unstored: Int64
    package let negative: Int
    package let inProgress: Int
    /// Left out without a shared store.
    package let store: SharingStatus.Store?
    /// Left out for a node that works alone.
    package let cluster: SharingStatus.Cluster?

    init(_ cache: Cache, _ state: RenditionState, _ sharing: SharingStatus) {
        let now = cache.statistics()
        let space = cache.space()
        (objects, bytes) = (Int64(now.objects), Int64(now.bytes))
        (aliases, aliasBytes) = (now.aliases, now.aliasBytes)
        (diskBytes, limitBytes, freeBytes) = (now.diskBytes, Int64(now.limitBytes), space?.disk.freeBytes)
        notStoring = (now.refusal ?? space?.refusal)?.token
        (hits, misses) = (now.hits, Int64(now.misses))
        (evictions, purged) = (Int64(now.evictions), Int64(now.purged))
        (corrupt, unstored) = (Int64(now.corrupt), Int64(now.unstored))
        (negative, inProgress) = (state.rememberedFailures, state.missesInProgress)
        (store, cluster) = (sharing.store, sharing.cluster)
    }
}

/// The body of `GET /cache?url=` (docs/api.md).
package struct CacheListing: Codable, Sendable {
    package struct Rendition: Codable, Sendable {
        /// The name of the format.
        package let format: String
        /// The options that differ from their defaults.
        package let options: [String: String]
        package let bytes: Int64
        /// Seconds since the origin's last response.
        package let age: Int64
        /// `fresh`, `stale`, `expired` or `unconfirmed`; see ``Freshness``.
        package let state: String
        /// Seconds until the origin is asked again; 0 unless it is fresh.
        package let freshFor: Int64
        /// The number of responses since the object entered memory.
        package let hits: Int
        /// The path of the object.
        package let object: String

        init(_ listed: ListedRendition) {
            // In a canonical text, commas occur only between parts.
            let parts = listed.rendition.split(separator: ",")
            format = parts.first.map { String($0) } ?? listed.object.fileExtension
            let pairs = parts.dropFirst().map { $0.split(separator: "=", maxSplits: 1).map { String($0) } }
            options = Dictionary(pairs.map { ($0.first ?? "", $0.count > 1 ? $0[1] : "") }) { first, _ in first }
            bytes = listed.object.length
            age = listed.age
            (state, freshFor) =
                switch listed.freshness {
                case .fresh(let remaining): ("fresh", remaining)
                case .stale: ("stale", 0)
                case .expired: ("expired", 0)
                case .unconfirmed: ("unconfirmed", 0)
                }
            hits = listed.uses
            object = "/object/\(listed.object.id).\(listed.object.fileExtension)"
        }
    }

    /// The canonical URL of the source.
    package let url: String
    /// The stored renditions, newest first.
    package let renditions: [Rendition]
}

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
        await store?.probeIfDue()
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
