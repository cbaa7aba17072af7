internal import Renditions
internal import Store
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
