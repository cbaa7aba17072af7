internal import Synchronization
internal import SystemIO

/// Purges the whole cluster: adds an entry to the stream, and waits until every live node has acknowledged it.
final class ClusterPurger: Sendable {
    private static let lookInterval: Duration = .milliseconds(100)

    private let follower: PurgeFollower
    private let stream: PurgeStream
    private let registry: NodeRegistry
    private let timings: ClusterTimings
    private let time: any ClusterTime
    private let waiters = Mutex<[StreamID: AsyncSignal]>([:])

    init(
        _ follower: PurgeFollower, _ stream: PurgeStream, _ registry: NodeRegistry, _ timings: ClusterTimings,
        _ time: any ClusterTime
    ) {
        self.follower = follower
        self.stream = stream
        self.registry = registry
        self.timings = timings
        self.time = time
    }

    /// Tells a purge that a node has acknowledged it.
    func received(_ id: StreamID) {
        waiters.withLock { $0[id] }?.signal()
    }

    /// Purges all nodes, and waits at most ``ClusterTimings/purgeLimit`` for them. Without the server it purges this node, and the
    /// others later.
    func broadcast(_ scope: ClusterPurge) async -> PurgeReport {
        let end = time.now + timings.purgeLimit
        guard follower.isTakingPart, let id = await add(scope) else {
            let counts = await follower.applyAlone(scope)
            // The entry does not exist yet, and nodes may have come since the latest look.
            return PurgeReport(counts: counts, nodes: registry.knownNodes.count, acknowledged: 0)
        }
        let wakeup = AsyncSignal()
        waiters.withLock { $0[id] = wakeup }
        defer { waiters.withLock { $0[id] = nil } }
        var nodes: Set<String>?
        var counts: [String: PurgeCounts] = [:]
        while true {
            do throws(RedisError) {
                // Only nodes that are listed after the entry was added may be left out: they find it when they catch up.
                nodes = Set(try await registry.liveNodes(stream.commands, within: timings.commandLimit)).union([registry.name])
                counts = try await stream.acknowledgements(of: id)
            } catch {
                // The other nodes find the entry when the server is back.
                if error != .timedOut { break }
            }
            if nodes?.isSubset(of: counts.keys) == true || time.now >= end { break }
            await wakeup.wait(for: min(Self.lookInterval, end - time.now), time)
            // A caller that leaves does not end a purge, but must not spin either.
            if Task.isCancelled { break }
        }
        if counts[registry.name] == nil { counts[registry.name] = await follower.applyNow(id, scope) }
        // Without a look at the nodes, the purge may be in force on this one only.
        let isCertain = nodes != nil
        let live = nodes ?? Set(registry.knownNodes).union(counts.keys).union([registry.name])
        var sum = PurgeCounts(purged: 0, bytes: 0)
        for count in counts.values { sum.add(count) }
        return PurgeReport(counts: sum, nodes: live.count, acknowledged: isCertain ? live.intersection(counts.keys).count : 0)
    }

    /// Adds the purge to the stream; nil if the server cannot be reached or has lost the stream.
    private func add(_ scope: ClusterPurge) async -> StreamID? {
        let purge = RecordedPurge(scope, time: time.wallClock)
        guard let id = try? await stream.add([purge], to: follower.streamIdentity ?? "").ids.first else { return nil }
        follower.noteOwn(id, purge)
        return id
    }
}
