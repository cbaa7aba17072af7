package import Cache
package import Cluster
package import Fetch
package import Ledger
package import SystemIO

/// The cooperation of nodes through ``Cluster``: leases, findings and purges in Redis or Valkey.
package struct ClusterCoordinator: NodeCoordinator {
    private let cluster: Cluster
    /// Seconds that a finding is kept if the origin gives no lifetime.
    private let freshFor: Int64
    private let clock: TimeSource

    /// - Parameters:
    ///   - freshFor: Seconds that a finding is kept if the origin gives no lifetime: `cache.fresh_for`.
    ///   - clock: Gives the age of findings.
    package init(_ cluster: Cluster, freshFor: Int64, clock: TimeSource) {
        self.cluster = cluster
        self.freshFor = freshFor
        self.clock = clock
    }

    package func join(
        _ key: AliasKey, of source: SourceURL, rejecting rejected: SharedFinding?, failureScope: String
    ) async -> FlightRole {
        var outdated = rejected.flatMap { SharedRecord($0.record) }
        while true {
            switch await cluster.joinFlight(key.description, sourceURL: source.canonical, outdated: outdated) {
            case .lead(let lease):
                return .lead(ClusterLease(lease, failureScope: failureScope, freshFor: freshFor, clock: clock))
            case .found(let record, let isFollowed):
                if let failure = SharedFailure(record, scope: failureScope) { return .failed(failure) }
                if let finding = SharedFinding(record, clock) { return .found(finding, isFollowed: isFollowed) }
                // A failure under other limits. This node tries the source itself.
                if outdated == record { return .alone }
                outdated = record
            case .alone:
                return .alone
            }
        }
    }

    package func purgeAllNodes(_ scope: PurgeScope, within limit: Duration?) async -> PurgeReport {
        await cluster.broadcastPurge(scope, within: limit)
    }

    package func progress(ofPurge id: String) async throws -> PurgeReport? {
        try await cluster.purgeProgress(of: id)
    }
}

private struct ClusterLease: FlightLease {
    private let lease: Lease
    private let failureScope: String
    /// Seconds that a finding is kept if the origin gives no lifetime.
    private let freshFor: Int64
    private let clock: TimeSource

    init(_ lease: Lease, failureScope: String, freshFor: Int64, clock: TimeSource) {
        self.lease = lease
        self.failureScope = failureScope
        self.freshFor = freshFor
        self.clock = clock
    }

    func complete(_ finding: SharedFinding) async {
        let seconds = (finding.freshFor ?? freshFor) - (clock.steadySeconds - finding.fetchedAt)
        _ = await lease.complete(SharedRecord(finding, clock), lifetime: .seconds(max(0, seconds)))
    }

    func fail(_ failure: SharedFailure) async {
        let record = SharedRecord(
            outcome: .failure(code: failure.code, details: failure.details(scope: failureScope)), fetchedAt: failure.foundAt,
            freshFor: failure.lifetime)
        _ = await lease.complete(record, lifetime: .seconds(failure.lifetime), isOfSource: failure.isOfSource)
    }

    func release() async {
        await lease.release()
    }
}

extension SharedFailure {
    /// Nil for a record of an object, or of a failure under other limits.
    package init?(_ record: SharedRecord, scope: String) {
        guard case .failure(let code, let details) = record.outcome, let lifetime = record.freshFor else { return nil }
        self.init(code: code, details: details, scope: scope, foundAt: record.fetchedAt, lifetime: lifetime)
    }
}

extension SharedRecord {
    /// The record has the wall clock's time, because the nodes have that in common.
    fileprivate init(_ finding: SharedFinding, _ clock: TimeSource) {
        self.init(
            outcome: .object(id: finding.object.description, fileExtension: finding.fileExtension),
            etag: finding.validators.etag, lastModified: finding.validators.lastModified,
            fetchedAt: finding.fetchedAt + clock.unixSeconds - clock.steadySeconds, freshFor: finding.freshFor,
            mustRevalidate: finding.mustRevalidate)
    }
}

extension SharedFinding {
    /// Seconds by which the clock of another node may be ahead. What is further in the future is stale.
    private static let tolerance: Int64 = 60

    /// Nil for a record that names no object.
    fileprivate init?(_ record: SharedRecord, _ clock: TimeSource) {
        guard case .object(let id, let fileExtension) = record.outcome, let object = ObjectID(hex: id) else { return nil }
        let age = clock.unixSeconds - record.fetchedAt
        self.init(
            object: object, fileExtension: fileExtension,
            validators: Validators(etag: record.etag, lastModified: record.lastModified),
            fetchedAt: clock.steadySeconds - (-Self.tolerance..<0 ~= age ? 0 : age), freshFor: record.freshFor,
            mustRevalidate: record.mustRevalidate, began: record.began, record: record.bytes)
    }
}
