package import Fetch
package import Fleet
package import Store
package import SystemIO

/// The cooperation of nodes through ``Cluster``: leases, records and purges in Redis or Valkey.
package struct ClusterCoordinator: NodeCoordinator {
    private let cluster: Cluster
    /// Seconds that a record is kept if the origin gives no lifetime.
    private let freshFor: Int64
    private let clock: TimeSource

    /// - Parameter freshFor: Seconds that a record is kept if the origin gives no lifetime: `cache.fresh_for`.
    package init(_ cluster: Cluster, freshFor: Int64, clock: TimeSource) {
        self.cluster = cluster
        self.freshFor = freshFor
        self.clock = clock
    }

    package func join(
        _ key: AliasKey, of source: SourceURL, rejecting rejected: SharedRecord?, failureScope: String
    ) async -> FlightRole {
        var outdated = rejected
        while true {
            switch await cluster.flights.findOrLead(key.description, sourceURL: source.canonical, outdated: outdated) {
            case .lead(let lease):
                return .lead(FlightLease(lease: lease, failureScope: failureScope, freshFor: freshFor, clock: clock))
            case .found(let record, let isFollowed):
                if let failure = SharedFailure(record, scope: failureScope) { return .failed(failure) }
                if case .object = record.outcome { return .found(record, isFollowed: isFollowed) }
                // A failure under other limits. This node tries the source itself.
                if outdated == record { return .alone }
                outdated = record
            case .alone:
                return .alone
            }
        }
    }
}

/// The exclusive right to run a miss. It is renewed until it ends; releasing the last reference ends it.
package struct FlightLease: Sendable {
    fileprivate let lease: Lease
    /// See ``SharedFailure/details(scope:)``.
    fileprivate let failureScope: String
    /// Seconds that a record is kept if the origin gives no lifetime.
    fileprivate let freshFor: Int64
    fileprivate let clock: TimeSource

    /// Ends the lease and hands the rendition to the waiting nodes, which must be able to read its object.
    func complete(_ rendition: CachedRendition) async {
        guard let alias = rendition.alias else { return await release() }
        let seconds = (alias.times.freshFor ?? freshFor) - (clock.steadySeconds - alias.times.fetchedAt)
        var times = alias.times
        times.fetchedAt += clock.unixSeconds - clock.steadySeconds
        // The record contains wall-clock time, because the nodes have that in common.
        let record = SharedRecord(
            outcome: .object(rendition.name), validators: alias.validators, times: times)
        _ = await lease.complete(record, lifetime: .seconds(max(0, seconds)))
    }

    /// Ends the lease and hands the failure to the waiting nodes, and to those that ask within its lifetime.
    func fail(_ failure: SharedFailure) async {
        let record = SharedRecord(
            outcome: .failure(code: failure.code, details: failure.details(scope: failureScope)),
            times: OriginTimes(fetchedAt: failure.foundAt, freshFor: failure.lifetime))
        _ = await lease.complete(record, lifetime: .seconds(failure.lifetime), isOfSource: failure.isOfSource)
    }

    /// Ends the lease without a result, so that a waiting node takes the lead.
    func release() async {
        await lease.release()
    }
}

extension SharedFailure {
    /// Nil for a record of an object, or of a failure under other limits.
    package init?(_ record: SharedRecord, scope: String) {
        guard case .failure(let code, let details) = record.outcome, let lifetime = record.times.freshFor else { return nil }
        self.init(code: code, details: details, scope: scope, foundAt: record.times.fetchedAt, lifetime: lifetime)
    }
}

extension SharedRecord {
    /// Seconds by which the clock of another node may be ahead. A record from further in the future is stale.
    private static let tolerance: Int64 = 60

    /// The alias of the local cache; nil if its time is out of range by this node's clock.
    func alias(of request: RenditionRequest, _ clock: TimeSource) -> AliasRecord? {
        let age = clock.unixSeconds - times.fetchedAt
        var times = times
        times.fetchedAt = clock.steadySeconds - (-Self.tolerance..<0 ~= age ? 0 : age)
        guard times.isInRange else { return nil }
        return AliasRecord(
            key: request.key, sourceURL: request.source.canonical, rendition: request.rendition.canonicalText,
            validators: validators, times: times)
    }
}

/// The cooperation of several nodes: one of them runs a miss.
///
/// A node works alone whenever the others cannot be reached; a call then returns at once or within a short deadline.
package protocol NodeCoordinator: Sendable {
    /// Finds another node's record of a rendition, waits for the node that runs its miss, or takes the lead.
    ///
    /// - Parameters:
    ///   - rejected: A record that this function returned before and that the caller could not use.
    ///   - failureScope: See ``SharedFailure/details(scope:)``.
    func join(
        _ key: AliasKey, of source: SourceURL, rejecting rejected: SharedRecord?, failureScope: String
    ) async -> FlightRole
}

/// The role of a node in a miss.
package enum FlightRole: Sendable {
    /// This node runs the miss and then ends the lease.
    case lead(FlightLease)
    /// Another node has run it: the record of its object. `isFollowed` is true if this call waited for it.
    case found(SharedRecord, isFollowed: Bool)
    /// Another node has run it, and it failed.
    case failed(SharedFailure)
    /// This node runs the miss for itself, because the others cannot be reached.
    case alone
}
