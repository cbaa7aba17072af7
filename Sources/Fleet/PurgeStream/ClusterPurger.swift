package import Store
internal import Synchronization
internal import SystemIO

/// Purges the whole cluster: adds an entry to the stream, and waits until every live node has acknowledged it.
package final class ClusterPurger: Sendable {
    private static let lookInterval: Duration = .milliseconds(100)

    private let follower: PurgeFollower
    private let stream: PurgeStream
    private let registry: NodeRegistry
    private let waiters = Mutex<[StreamID: AsyncSignal]>([:])
    private var context: ClusterContext { stream.context }
    private var timings: ClusterTimings { context.timings }
    private var time: TimeSource { context.time }

    init(_ follower: PurgeFollower, _ stream: PurgeStream, _ registry: NodeRegistry) {
        self.follower = follower
        self.stream = stream
        self.registry = registry
    }

    /// Wakes the caller of a purge that a node has acknowledged.
    func received(_ id: StreamID) {
        waiters.withLock { $0[id] }?.signal()
    }

    /// Purges all nodes. Returns when every live node has applied the purge, or after a timeout. Without the server, returns
    /// once this node has applied it; the other nodes follow when the server is back.
    ///
    /// - Parameter limit: The longest wait; nil for ``ClusterTimings/purgeLimit``.
    package func broadcast(_ scope: PurgeScope, within limit: Duration? = nil) async -> PurgeReport {
        let end = time.now + (limit ?? timings.purgeLimit)
        let (purge, own, entry) = await follower.make(scope, addingTo: stream)
        guard let id = entry else {
            // The entry does not exist yet, and nodes may have joined since the latest lookup.
            return PurgeReport(
                counts: own ?? PurgeCounts(), nodes: registry.knownNodes.count, acknowledged: 0, id: purge.token)
        }
        let wakeup = AsyncSignal()
        waiters.withLock { $0[id] = wakeup }
        defer { waiters.withLock { $0[id] = nil } }
        var nodes: Set<String>?
        var counts: [String: PurgeCounts] = [:]
        while true {
            do throws(RedisError) {
                // Only nodes that are listed after the entry was added may be left out: they find it when they catch up.
                nodes = Set(try await registry.liveNodes(context)).union([registry.name])
                counts = try await stream.acknowledgements(of: id)
            } catch {
                // The other nodes find the entry when the server is back.
                if error != .timedOut { break }
            }
            if nodes?.isSubset(of: counts.keys) == true || time.now >= end { break }
            await wakeup.wait(for: min(Self.lookInterval, end - time.now), time)
            // Cancellation of the caller does not end the purge, but must not make this loop spin.
            if Task.isCancelled { break }
        }
        if counts[registry.name] == nil { counts[registry.name] = own }
        // Without a lookup of the live nodes, this node may be the only one that has applied the purge.
        let isCertain = nodes != nil
        let live = nodes ?? Set(registry.knownNodes).union(counts.keys).union([registry.name])
        return PurgeReport(
            counts: Self.sum(counts), nodes: live.count, acknowledged: isCertain ? live.intersection(counts.keys).count : 0,
            id: purge.token)
    }

    /// Returns the progress of a purge of any node; nil if the purge is unknown or more than an hour old.
    ///
    /// - Parameter name: ``PurgeReport/id``.
    package func progress(of name: String) async throws(RedisError) -> PurgeReport? {
        // A stream that was lost gets the purge again, as another entry.
        let (known, isPending) = await follower.entry(ofToken: name)
        var entry = known
        do throws(RedisError) {
            if entry == nil { entry = try await stream.entry(name) }
        } catch {
            guard isPending else { throw error }
        }
        guard let entry else {
            guard isPending else { return nil }
            return PurgeReport(counts: PurgeCounts(), nodes: registry.knownNodes.count, acknowledged: 0, id: name)
        }
        guard entry.milliseconds >= PurgeStream.oldestAcknowledged(at: follower.clusterTime) else { return nil }
        let live = try await registry.liveNodes(context)
        let nodes = registry.liveNodes
        let counts = try await stream.acknowledgements(of: entry)
        // A node that joined after the entry was added has not acknowledged it.
        let acknowledged = nodes.count { counts[$0.name] != nil || $0.joined >= entry }
        return PurgeReport(counts: Self.sum(counts), nodes: live.count, acknowledged: acknowledged, id: name)
    }

    private static func sum(_ counts: [String: PurgeCounts]) -> PurgeCounts {
        counts.values.reduce(into: PurgeCounts()) { $0.add($1) }
    }
}
