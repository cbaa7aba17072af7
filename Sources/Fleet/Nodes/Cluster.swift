package import Store
internal import Synchronization
package import SystemIO

/// This node's part in a cluster of nodes that share a Redis or Valkey server (7.0 or later).
///
/// Every operation works without the server too: the caller then learns within 250 ms that it has to work alone. Three
/// connections, each with its own thread, carry commands, messages, and the purge stream.
///
/// Thread-safe. ``close()`` blocks.
package final class Cluster: Sendable {
    /// Flights that the nodes share.
    package var flights: FlightTable { node.flights }

    /// Purges of all nodes.
    package var purger: ClusterPurger { node.purger }

    /// Prewarm lists on which all nodes work.
    package var prewarm: SharedPrewarm { node.prewarm }

    /// Statuses of requests in progress, for all nodes.
    package var statuses: SharedStatuses { node.statuses }

    private let node: ClusterNode
    private let commandLink: RedisLink
    private let messageLink: RedisLink
    private let streamLink: RedisLink
    let breaker: CircuitBreaker<RedisError>
    private let meter: ClusterMeter
    private let disk = WorkThreads(count: 1, limit: 64, name: "cluster-disk")

    /// - Parameter cache: Opened with ``PurgeTables/owned``. Purges of other nodes are applied to it.
    package init(
        _ configuration: ClusterConfiguration, cache: Cache, time: TimeSource = .system, handlers: ClusterHandlers
    ) {
        let meter = ClusterMeter()
        let keys = configuration.keys
        let reporter = StateReporter(server: configuration.address.description, onChange: handlers.onEvent)
        let limits = BreakerLimits(failures: 3, pause: .seconds(1), maxPause: .seconds(1))
        let breaker = CircuitBreaker<RedisError>(limits, now: { time.now }) { reporter.set(.breaker, $0) }
        let nodeReference = WeakNodeReference()
        func counting(_ handle: @escaping @Sendable (RedisLink.Event) -> Void) -> @Sendable (RedisLink.Event) -> Void {
            { event in
                switch event {
                case .connected: meter.update { $0.connections += 1 }
                case .lost(let error): meter.count(error)
                case .failed: break
                }
                handle(event)
            }
        }
        commandLink = RedisLink(
            configuration.address, name: "cluster-cmd", rights: keys.rights, time: time,
            onEvent: counting { event in
                if case .lost(let error) = event { breaker.trip(error) }
                reporter.set(.commands, event.error)
                if event == .connected { breaker.retry() }
            })
        messageLink = RedisLink(
            configuration.address, name: "cluster-sub", channel: keys.channel, time: time,
            onEvent: counting { event in
                // Callers poll, so a lost subscription only delays them.
                if case .lost = event { return }
                reporter.setSubscription(event.error)
            }, onMessage: { nodeReference.node?.received($0) })
        streamLink = RedisLink(
            configuration.address, name: "cluster-purge", time: time,
            onEvent: counting { event in
                if let error = event.error { reporter.set(.stream, error) } else { nodeReference.node?.streamConnected() }
            })
        let context = ClusterContext(
            commands: GuardedCommands(commandLink, breaker, meter, time), keys: keys,
            nodeName: "\(configuration.node)-\(Hex.encode(UInt128.random(in: .min ... .max)).prefix(12))",
            timings: configuration.timings, time: time, meter: meter)
        node = ClusterNode(
            context, stream: streamLink, cache: cache, disk: disk, reporter: reporter, handlers: handlers)
        nodeReference.set(node)
        self.breaker = breaker
        self.meter = meter
    }

    /// Whether a former process with this cache took part in the cluster so recently that the other nodes still counted it, and
    /// no purge can have completed without it. Blocks.
    package static func tookPartRecently(_ cache: Cache, _ configuration: ClusterConfiguration) -> Bool {
        let clock = try? cache.ledger.read { try PurgeTables($0).clock(ofBoot: ClusterTime.boot) }
        guard let clock = clock ?? nil else { return false }
        let away = cache.sharedClock.monotonic - clock.part
        return (0..<configuration.timings.nodeLifetime.milliseconds).contains(away)
    }

    /// Connects in the background, and joins the cluster as soon as the missed purges are applied.
    ///
    /// - Parameter onLatePurge: Called for each purge that this node applies late, because this node was away or another node
    ///   made the purge alone: caches in front of the nodes may have received old bytes meanwhile. Runs on any thread, which it
    ///   must not block.
    package func start(onLatePurge: @escaping @Sendable (PurgeScope) -> Void) {
        for link in [commandLink, messageLink, streamLink] { link.start() }
        node.start(onLatePurge: onLatePurge)
    }

    /// Finishes the purge that is being applied, and leaves the cluster, so that later purges do not wait for this node. Call
    /// this after the last flight has ended: leases are no longer renewed.
    package func leave() async {
        await node.leave()
    }

    /// Ends connections and threads. Blocks for a few seconds at most.
    package func close() {
        node.stop()
        for link in [commandLink, messageLink, streamLink] { link.close() }
        disk.close()
    }

    /// Returns the live nodes, including this one, and the latest purge stream position of any of them. If the server cannot be
    /// reached, returns the nodes of the latest lookup.
    package func liveNodes() async -> (nodes: [LiveNode], latest: StreamID) { await node.liveNodes() }

    /// Connects to the server as nodes do, and checks its version, the user's rights, and whether it takes writes. Blocks for a
    /// few seconds at most.
    ///
    /// - Returns: The name and version of the server.
    package static func check(_ configuration: ClusterConfiguration) throws(RedisError) -> String {
        let (keys, time) = (configuration.keys, TimeSource.system)
        _ = try Session(configuration.address, channel: keys.channel, within: .seconds(3), time)
        let session = try Session(configuration.address, channel: nil, rights: keys.rights, within: .seconds(3), time)
        if let refusal = session.refusal { throw .refused(refusal) }
        return session.server
    }

    /// Whether the node shares its work now.
    package var isSharing: Bool { node.follower.isTakingPart && breaker.phase == .closed }

    /// The node's name: the configured name and the identity of this run.
    package var name: String { node.registry.name }

    /// The number of live nodes, including this one, at the latest lookup, which may be a few heartbeats old.
    package var nodeCount: Int { node.registry.knownNodes.count }

    /// The number of flights that this node leads.
    package var leaseCount: Int { node.leases.count }

    /// The counters since startup.
    package var metrics: ClusterMetrics { meter.snapshot }
}

/// A weak reference from the connections to the node, which is created after them.
private final class WeakNodeReference: Sendable {
    private struct Reference {
        weak var node: ClusterNode?
    }

    private let reference = Mutex(Reference())

    var node: ClusterNode? { reference.withLock { $0.node } }

    func set(_ node: ClusterNode) {
        reference.withLock { $0.node = node }
    }
}
