package import Cache
package import Cluster
package import Fetch

/// The cooperation of nodes through ``Cluster``: leases, findings and purges in Redis or Valkey.
package struct ClusterCoordinator: NodeCoordinator {
    private let cluster: Cluster
    /// Seconds that a finding is kept if the origin gives no lifetime.
    private let freshFor: Int64
    private let now: @Sendable () -> Int64

    /// - Parameters:
    ///   - freshFor: Seconds that a finding is kept if the origin gives no lifetime: `cache.fresh_for`.
    ///   - clock: Gives the age of findings.
    package init(_ cluster: Cluster, freshFor: Int64, clock: CacheClock) {
        self.cluster = cluster
        self.freshFor = freshFor
        now = clock.unixSeconds
    }

    package func join(_ key: AliasKey, of source: SourceURL, rejecting rejected: SharedFinding?) async -> FlightRole {
        let start = await cluster.join(
            key.description, sourceURL: source.canonical, outdated: rejected.map { SharedRecord($0) })
        switch start {
        case .lead(let lease):
            return .lead(ClusterLease(lease) { freshFor, fetchedAt in (freshFor ?? self.freshFor) - (now() - fetchedAt) })
        case .found(let record, let isFollowed):
            return SharedFinding(record).map { .found($0, isFollowed: isFollowed) } ?? .alone
        case .alone:
            return .alone
        }
    }

    package func purge(_ scope: PurgeScope) async -> PurgeReport {
        let report = await cluster.purge(ClusterPurge(scope))
        return PurgeReport(
            purged: report.counts.purged, bytes: report.counts.bytes, nodes: (report.nodes, report.acknowledged))
    }
}

private struct ClusterLease: FlightLease {
    private let lease: Lease
    private let secondsLeft: @Sendable (_ freshFor: Int64?, _ fetchedAt: Int64) -> Int64

    init(_ lease: Lease, secondsLeft: @escaping @Sendable (_ freshFor: Int64?, _ fetchedAt: Int64) -> Int64) {
        self.lease = lease
        self.secondsLeft = secondsLeft
    }

    func complete(_ finding: SharedFinding) async {
        let seconds = secondsLeft(finding.freshFor, finding.fetchedAt)
        _ = await lease.complete(SharedRecord(finding), lifetime: .seconds(max(0, seconds)))
    }

    func release() async {
        await lease.release()
    }
}

extension SharedRecord {
    fileprivate init(_ finding: SharedFinding) {
        self.init(
            outcome: .object(id: finding.object.description, fileExtension: finding.fileExtension),
            etag: finding.validators.etag, lastModified: finding.validators.lastModified, fetchedAt: finding.fetchedAt,
            freshFor: finding.freshFor)
    }
}

extension SharedFinding {
    /// Nil for a record that names no object.
    fileprivate init?(_ record: SharedRecord) {
        guard case .object(let id, let fileExtension) = record.outcome, let object = ObjectID(hex: id) else { return nil }
        self.init(
            object: object, fileExtension: fileExtension,
            validators: Validators(etag: record.etag, lastModified: record.lastModified), fetchedAt: record.fetchedAt,
            freshFor: record.freshFor)
    }
}

extension ClusterPurge {
    fileprivate init(_ scope: PurgeScope) {
        self =
            switch scope {
            case .url(let url): .url(url)
            case .prefix(let prefix): .prefix(prefix)
            case .object(let id): .object(id.description)
            case .all: .all
            }
    }
}
