package import Store
internal import Synchronization
package import SystemIO

/// This node's part in a cluster of nodes that share a Redis or Valkey server (7.0 or later): registration, purges, flights and
/// prewarm lists.
///
/// Every operation works without the server too: the caller then learns within 250 ms that it has to work alone. Three
/// connections, each with its own thread, carry commands, messages, and the purge stream. Commands are sent through injected
/// protocols, so that tests can run several nodes against a model of a server.
///
/// Thread-safe. ``close()`` blocks.
package final class Cluster: Sendable {
    package let flights: FlightTable
    package let purger: ClusterPurger
    /// Prewarm lists on which all nodes work.
    package let prewarm: SharedPrewarm
    /// Statuses of requests in progress, for all nodes.
    package let statuses: SharedStatuses

    let registry: NodeRegistry
    let leases: LeaseTable
    let links: ClusterLinks?
    private let context: ClusterContext
    private let stream: any RedisCommands
    private let cache: Cache
    private let disk: any BlockingWork
    private let reporter: StateReporter
    private let handlers: ClusterHandlers
    private let executor: (any TaskExecutor)?
    private var timings: ClusterTimings { context.timings }
    private var time: TimeSource { context.time }
    private let tasks = Mutex<[Task<Void, Never>]>([])
    private let reconnected = AsyncSignal()

    /// Blocks.
    ///
    /// - Parameter cache: Opened with ``PurgeTables/owned``. Purges of other nodes are applied to it.
    package convenience init(
        _ configuration: ClusterConfiguration, cache: Cache, time: TimeSource = .system, handlers: ClusterHandlers
    ) {
        let meter = ClusterMeter()
        let reporter = StateReporter(server: configuration.address.description, onChange: handlers.onEvent)
        let links = ClusterLinks(configuration, reporter, meter, time)
        let context = ClusterContext(
            commands: links, keys: configuration.keys,
            nodeName: "\(configuration.node)-\(Hex.encode(UInt128.random(in: .min ... .max)).prefix(12))",
            timings: configuration.timings, time: time, meter: meter)
        self.init(
            context, stream: links.stream, links: links, cache: cache,
            // One thread may wait for a disk that stalls; the other reads meanwhile.
            disk: WorkThreads(count: 2, limit: 64, name: "cluster-disk"), reporter: reporter, handlers: handlers)
    }

    /// Blocks.
    ///
    /// - Parameters:
    ///   - context: The context with the callers' command connection.
    ///   - stream: The connection for blocking reads, on which other commands would have to wait.
    ///   - links: The connections to start and to close.
    init(
        _ context: ClusterContext, stream: any RedisCommands, links: ClusterLinks? = nil, cache: Cache,
        disk: any BlockingWork, reporter: StateReporter, handlers: ClusterHandlers, executor: (any TaskExecutor)? = nil
    ) {
        registry = NodeRegistry(context)
        let purger = ClusterPurger(context, reading: stream, registry, cache, disk, handlers)
        // The clock must be restored before the first purge and the first fetch.
        purger.restore()
        self.purger = purger
        leases = LeaseTable(context, cache.purges, executor: executor)
        flights = FlightTable(context, cache.purges, leases: leases) { purger.isTakingPart }
        prewarm = SharedPrewarm(context)
        statuses = SharedStatuses(context: context)
        self.links = links
        self.context = context
        self.stream = stream
        self.cache = cache
        self.disk = disk
        self.reporter = reporter
        self.handlers = handlers
        self.executor = executor
    }

    /// Whether a former process with this cache took part in the cluster so recently that the other nodes still counted it, and
    /// no purge can have completed without it. Blocks.
    package static func tookPartRecently(_ cache: Cache, _ configuration: ClusterConfiguration) -> Bool {
        let clock = try? cache.ledger.read { try PurgeTables($0).clock(ofBoot: ClusterTime.boot) }
        guard let clock = clock ?? nil else { return false }
        let away = cache.sharedClock.monotonic - clock.part
        return (0..<configuration.timings.nodeLifetime.milliseconds).contains(away)
    }

    /// Connects in the background, and joins the cluster as soon as the missed purges are applied. From then on, sends
    /// heartbeats and renews leases.
    ///
    /// - Parameter onLatePurge: Called for each purge that this node applies late, because this node was away or another node
    ///   made the purge alone: caches in front of the nodes may have received old bytes meanwhile. Runs on any thread, which it
    ///   must not block.
    package func start(onLatePurge: @escaping @Sendable (PurgeScope) -> Void) {
        purger.reportLatePurges(to: onLatePurge)
        links?.start(
            onMessage: { [weak self] in self?.received($0) }, onStream: { [weak self] in self?.streamConnected() })
        let loops: [@Sendable () async -> Void] = [followPurges, sendHeartbeats, renewLeases]
        tasks.withLock { tasks in
            guard tasks.isEmpty else { return }
            tasks = loops.map { loop in Task(executorPreference: executor) { await loop() } }
        }
    }

    func stop() {
        for task in tasks.withLock({ $0 }) { task.cancel() }
    }

    /// Leaves the cluster, so that later purges do not wait for this node. Call this after the last flight has ended: leases are
    /// no longer renewed, and expire.
    ///
    /// Waits up to ``ClusterTimings/leaveLimit`` for the stream to contain the purges that this node made alone. Then ends the
    /// loops, finishes the purge that is being applied, waits until the position in the purge stream is saved, and removes this
    /// node from the list of live nodes.
    package func leave() async {
        let (end, pause) = (time.now + timings.leaveLimit, AsyncSignal())
        while context.meter.snapshot.purgesPending > 0, time.now < end, !Task.isCancelled {
            await pause.wait(for: .milliseconds(50), time)
        }
        let wasTakingPart = purger.isTakingPart
        stop()
        purger.fallBehind()
        for task in tasks.withLock({ $0 }) { await task.value }
        await purger.waitForWrites()
        if wasTakingPart {
            // The next process counts the nodes that are live now.
            _ = try? await registry.liveNodes(context)
            await purger.save()
        }
        await prewarm.leave()
        await registry.remove(registry.name, context)
    }

    /// Ends connections and threads. Blocks for a few seconds at most.
    package func close() {
        stop()
        links?.close()
        disk.close()
    }

    /// Returns the live nodes, including this one, and the latest purge stream position of any of them. If the server cannot be
    /// reached, returns the nodes of the latest lookup.
    package func liveNodes() async -> (nodes: [LiveNode], latest: StreamID) {
        _ = try? await registry.liveNodes(context)
        var nodes = registry.liveNodes
        for index in nodes.indices where nodes[index].name == registry.name { nodes[index].position = purger.position }
        return (nodes, nodes.map(\.position).max() ?? .zero)
    }

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
    package var isSharing: Bool { purger.isTakingPart && (links?.breaker.phase ?? .closed) == .closed }

    /// The node's name: the configured name and the identity of this run.
    package var name: String { registry.name }

    /// The number of live nodes, including this one, at the latest lookup, which may be a few heartbeats old.
    package var nodeCount: Int { registry.knownNodes.count }

    /// The number of flights that this node leads.
    package var leaseCount: Int { leases.count }

    package var metrics: ClusterMetrics { context.meter.snapshot }

    // MARK: Loops and messages

    /// Handles a message on the cluster's channel.
    func received(_ bytes: [UInt8]) {
        switch ClusterMessage(bytes) {
        case .flight(let key, let value): flights.received(key: key, value: value)
        case .failure(let sourceURL, let bytes):
            guard let record = SharedRecord(bytes), purger.isTakingPart else { return }
            handlers.onFailure(sourceURL, record) { [cache] in record.isCurrent(sourceURL, cache.purges) }
        case .acknowledged(let id): purger.received(id)
        case .prewarm: prewarm.arrivals.signal()
        case .registered(let node):
            registry.registered(node)
            // A process that starts before the next heartbeat has to know the node.
            if purger.isTakingPart { Task(executorPreference: executor) { await self.purger.save() } }
        case .left(let node): registry.left(node)
        case nil: context.meter.count(.nonsense("a message of an unknown form"))
        }
    }

    func streamConnected() {
        purger.connected()
        reconnected.signal()
    }

    private func followPurges() async {
        // An immediate attempt would only report that no connection is up yet.
        await reconnected.wait(for: timings.blockTime, time)
        while !Task.isCancelled {
            do throws(RedisError) {
                try await purger.follow {
                    self.reporter.set(.stream, nil)
                    self.cache.confirmAliases()
                    self.handlers.onFollow()
                }
            } catch {
                if Task.isCancelled { return }
                context.meter.count(error)
                reporter.set(.stream, error)
                if case .refused(let refusal) = error, refusal.isWorthReconnecting { stream.drop(error) }
                // A reconnection ends the pause.
                await reconnected.wait(for: timings.pollInterval, time)
            }
        }
    }

    private func sendHeartbeats() async {
        let pause = AsyncSignal()
        var beats = 0
        var lastPart = time.now
        while !Task.isCancelled {
            await pause.wait(for: timings.beatInterval, time)
            if purger.isTakingPart {
                lastPart = time.now
            } else if time.now >= lastPart + timings.aloneLimit, !Task.isCancelled {
                lastPart = time.now
                handlers.onEvent(.doubting(after: timings.aloneLimit))
                await cache.doubtAliases()
            }
            guard registry.isRegistered else { continue }
            if let isListed = try? await registry.beat(context, at: purger.position), !isListed {
                purger.fallBehind()
            }
            try? await purger.askTime(context)
            // If heartbeats waited for a disk that stalls, purges would complete without this node.
            if purger.isTakingPart { Task(executorPreference: executor) { await self.purger.save() } }
            beats += 1
            // For reports only: a purge looks up the nodes itself.
            if beats.isMultiple(of: timings.beatsPerLook) {
                _ = try? await registry.liveNodes(context)
            }
        }
    }

    private func renewLeases() async {
        let pause = AsyncSignal()
        while !Task.isCancelled {
            await pause.wait(for: timings.renewInterval, time)
            await leases.renew()
        }
    }
}
