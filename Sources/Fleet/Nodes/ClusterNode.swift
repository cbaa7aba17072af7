internal import Store
internal import Synchronization
internal import SystemIO

/// One node's part in the protocols of a cluster, apart from connections: registration, purges, flights and prewarm lists.
///
/// Commands are sent through injected protocols, so that tests can run several nodes against a model of a server. Thread-safe.
final class ClusterNode: Sendable {
    let registry: NodeRegistry
    let follower: PurgeFollower
    let purger: ClusterPurger
    let flights: FlightTable
    let leases: LeaseTable
    let prewarm: SharedPrewarm
    let statuses: SharedStatuses
    private let context: ClusterContext
    private let stream: any RedisCommands
    private let cache: Cache
    private let reporter: StateReporter
    private let handlers: ClusterHandlers
    private let executor: (any TaskExecutor)?
    private var timings: ClusterTimings { context.timings }
    private var time: TimeSource { context.time }
    private let tasks = Mutex<[Task<Void, Never>]>([])
    private let reconnected = AsyncSignal()
    private let isSavingClock = Atomic(false)

    /// Blocks.
    ///
    /// - Parameters:
    ///   - context: The context with the callers' command connection.
    ///   - stream: The connection for blocking reads, on which other commands would have to wait.
    init(
        _ context: ClusterContext, stream: any RedisCommands, cache: Cache, disk: any BlockingWork, reporter: StateReporter,
        handlers: ClusterHandlers, executor: (any TaskExecutor)? = nil
    ) {
        registry = NodeRegistry(context)
        var followed = context
        followed.commands = stream
        let follower = PurgeFollower(PurgeStream(context: followed), registry, cache, disk, handlers)
        // The clock must be restored before the first purge and the first fetch.
        follower.restoreClock()
        self.follower = follower
        purger = ClusterPurger(follower, PurgeStream(context: context), registry)
        leases = LeaseTable(context, cache.purges, executor: executor)
        flights = FlightTable(context, cache.purges, leases: leases) { follower.isTakingPart }
        prewarm = SharedPrewarm(context)
        statuses = SharedStatuses(context: context)
        self.cache = cache
        self.context = context
        self.stream = stream
        self.reporter = reporter
        self.handlers = handlers
        self.executor = executor
    }

    /// Starts to follow purges, to send heartbeats and to renew leases; see ``Cluster/start(onLatePurge:)``.
    func start(onLatePurge: @escaping @Sendable (PurgeScope) -> Void) {
        follower.reportLatePurges(to: onLatePurge)
        let loops: [@Sendable () async -> Void] = [followPurges, sendHeartbeats, renewLeases]
        tasks.withLock { tasks in
            guard tasks.isEmpty else { return }
            tasks = loops.map { loop in Task(executorPreference: executor) { await loop() } }
        }
    }

    /// Ends the loops.
    func stop() {
        for task in tasks.withLock({ $0 }) { task.cancel() }
    }

    /// Waits up to ``ClusterTimings/leaveLimit`` for the stream to contain the purges that this node made alone. Then ends the
    /// loops, waits until the position in the purge stream is saved, and removes this node from the list of live nodes. Its
    /// leases expire.
    func leave() async {
        let (end, pause) = (time.now + timings.leaveLimit, AsyncSignal())
        while context.meter.snapshot.purgesPending > 0, time.now < end, !Task.isCancelled {
            await pause.wait(for: .milliseconds(50), time)
        }
        let wasTakingPart = follower.isTakingPart
        stop()
        follower.fallBehind()
        for task in tasks.withLock({ $0 }) { await task.value }
        if wasTakingPart { await follower.saveClock() }
        await prewarm.leave()
        await registry.remove(registry.name, context)
    }

    /// See ``Cluster/liveNodes()``.
    func liveNodes() async -> (nodes: [LiveNode], latest: StreamID) {
        _ = try? await registry.liveNodes(context)
        var nodes = registry.liveNodes
        for index in nodes.indices where nodes[index].name == registry.name { nodes[index].position = follower.position }
        return (nodes, nodes.map(\.position).max() ?? .zero)
    }

    /// Handles a message on the cluster's channel.
    func received(_ bytes: [UInt8]) {
        switch ClusterMessage(bytes) {
        case .flight(let key, let value): flights.received(key: key, value: value)
        case .failure(let sourceURL, let bytes):
            guard let record = SharedRecord(bytes), follower.isTakingPart else { return }
            handlers.onFailure(sourceURL, record) { [cache] in record.isCurrent(sourceURL, cache.purges) }
        case .acknowledged(let id): purger.received(id)
        case .prewarm: prewarm.arrivals.signal()
        case .registered(let node): registry.registered(node)
        case nil: context.meter.count(.nonsense("a message of an unknown form"))
        }
    }

    /// Handles a new connection of the purge stream.
    func streamConnected() {
        follower.connected()
        reconnected.signal()
    }

    private func followPurges() async {
        // An immediate attempt would only report that no connection is up yet.
        await reconnected.wait(for: timings.blockTime, time)
        while !Task.isCancelled {
            do throws(RedisError) {
                try await follower.follow {
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
            if follower.isTakingPart {
                lastPart = time.now
            } else if time.now >= lastPart + timings.aloneLimit, !Task.isCancelled {
                lastPart = time.now
                handlers.onEvent(.doubting(after: timings.aloneLimit))
                await cache.doubtAliases()
            }
            guard registry.isRegistered else { continue }
            if let isListed = try? await registry.beat(context, at: follower.position), !isListed {
                follower.fallBehind()
            }
            try? await ClusterTime.ask(context, cache.sharedClock)
            // If heartbeats waited for a disk that stalls, purges would complete without this node.
            if follower.isTakingPart, !isSavingClock.exchange(true, ordering: .relaxed) {
                Task(executorPreference: executor) {
                    await self.follower.saveClock()
                    self.isSavingClock.store(false, ordering: .relaxed)
                }
            }
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
