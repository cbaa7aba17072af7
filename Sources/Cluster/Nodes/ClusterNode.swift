internal import Cache
internal import Ledger
internal import Synchronization
internal import SystemIO

/// Receives the failure of a source that a node has found. The last argument says whether no known purge overtook it: it must be
/// called after the receiver has noted its own epoch.
package typealias FailureHandler = @Sendable (_ sourceURL: String, _ record: SharedRecord, _ isCurrent: () -> Bool) -> Void

/// One node's part in the protocols of a cluster, apart from connections: registration, purges, flights and prewarm lists.
///
/// It is created with whatever sends commands, so that tests can run several nodes against a model of a server. Any thread.
final class ClusterNode: Sendable {
    let registry: NodeRegistry
    let follower: PurgeFollower
    let purger: ClusterPurger
    let flights: FlightTable
    let leases: LeaseTable
    let prewarm: SharedPrewarm
    let statuses: SharedStatuses
    private let commands: any RedisCommands
    private let keys: ClusterKeys
    private let clock: SharedClock
    private let timings: ClusterTimings
    private let time: TimeSource
    private let meter: ClusterMeter
    private let executor: (any TaskExecutor)?
    private let onPrewarm: @Sendable () -> Void
    private let onFailure: FailureHandler
    private let onFollow: @Sendable (RedisError?) -> Void
    private let onAlone: @Sendable () -> Void
    private let onRefusal: @Sendable (RedisError) -> Void
    private let tasks = Mutex<[Task<Void, Never>]>([])
    private let reconnected = AsyncSignal()

    /// Blocks.
    ///
    /// - Parameters:
    ///   - commands: For callers.
    ///   - stream: For reads that wait; no other commands may wait behind them.
    ///   - cache: Opened with ``PurgeTables/owned``.
    ///   - revalidate: See ``PurgeFollower``.
    ///   - onPrewarm: Called when entries of a prewarm list were added.
    ///   - onFailure: Called when a node has found that a source fails.
    ///   - onFollow: Called with nil when this node begins to take part in the cluster, and with the error that ended that.
    ///   - onAlone: Called when this node has not taken part for ``ClusterTimings/aloneLimit``, and again each time that this has passed.
    ///   - onRefusal: Called with a refusal on `stream` that a new connection may end.
    ///   - onGap: Called if the purge stream does not reach back to what this node has applied.
    init(
        name: String, keys: ClusterKeys, commands: any RedisCommands, stream: any RedisCommands, cache: Cache,
        disk: any BlockingWork, revalidate: @escaping @Sendable (MissedPurges) async -> Void,
        timings: ClusterTimings = ClusterTimings(), time: TimeSource, meter: ClusterMeter,
        executor: (any TaskExecutor)? = nil, onPrewarm: @escaping @Sendable () -> Void = {},
        onFailure: @escaping FailureHandler = { _, _, _ in },
        onFollow: @escaping @Sendable (RedisError?) -> Void = { _ in },
        onAlone: @escaping @Sendable () -> Void = {},
        onRefusal: @escaping @Sendable (RedisError) -> Void = { _ in }, onGap: @escaping @Sendable () -> Void = {}
    ) {
        registry = NodeRegistry(name: name, keys: keys, timings: timings, time: time)
        let followed = PurgeStream(stream, keys, nodeName: name, timings, time)
        let follower = PurgeFollower(
            followed, registry, keys, timings, cache, disk, revalidate: revalidate, time, meter, onGap: onGap)
        // Before the first purge and the first fetch.
        follower.restoreClock()
        self.follower = follower
        purger = ClusterPurger(
            follower, PurgeStream(commands, keys, nodeName: name, timings, time), registry, timings, time)
        leases = LeaseTable(commands, keys, cache.purges, timings, time, meter, executor: executor)
        flights = FlightTable(
            commands, keys, nodeName: name, cache.purges, timings, time, meter, leases: leases
        ) { follower.isTakingPart }
        prewarm = SharedPrewarm(commands, keys, nodeName: name, timings, time, meter)
        statuses = SharedStatuses(commands, keys, timings, time)
        self.commands = commands
        self.keys = keys
        clock = cache.sharedClock
        self.timings = timings
        self.time = time
        self.meter = meter
        self.executor = executor
        self.onPrewarm = onPrewarm
        self.onFailure = onFailure
        self.onFollow = onFollow
        self.onAlone = onAlone
        self.onRefusal = onRefusal
    }

    /// Starts to follow purges, to send heartbeats and to renew leases.
    ///
    /// - Parameter onLatePurge: Called for each purge that this node applies later than the others.
    func start(onLatePurge: @escaping @Sendable (PurgeScope) -> Void = { _ in }) {
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

    /// Waits until the stream has the purges that this node has made alone, for up to ``ClusterTimings/leaveLimit``. Then ends the loops,
    /// waits until the position in the purge stream is saved, and takes this node off the list of live nodes. Leases that it holds
    /// expire.
    func leave() async {
        let (end, pause) = (time.now + timings.leaveLimit, AsyncSignal())
        while meter.snapshot.purgesPending > 0, time.now < end, !Task.isCancelled {
            await pause.wait(for: .milliseconds(50), time)
        }
        let wasTakingPart = follower.isTakingPart
        stop()
        follower.fallBehind()
        for task in tasks.withLock({ $0 }) { await task.value }
        if wasTakingPart { await follower.saveClock() }
        await prewarm.leave()
        await registry.leave(commands)
    }

    /// The live nodes now, with this node's own position; those at the latest look if the server cannot be reached.
    func look() async -> [LiveNode] {
        _ = try? await registry.liveNodes(commands, within: timings.commandLimit)
        let position = follower.position
        return registry.liveNodes.map { node in node.name == registry.name ? LiveNode(node, at: position) : node }
    }

    /// Handles a message of the cluster's channel.
    func received(_ bytes: [UInt8]) {
        meter.update { $0.messages += 1 }
        switch ClusterMessage(bytes) {
        case .flight(let key, let value): flights.received(key: key, value: value)
        case .failure(let sourceURL, let bytes):
            guard let record = SharedRecord(bytes), follower.isTakingPart else { return }
            onFailure(sourceURL, record) { [flights] in flights.isValid(record, of: sourceURL) }
        case .acknowledged(let id): purger.received(id)
        case .prewarm: onPrewarm()
        case nil: meter.count(.nonsense("a message of an unknown form"))
        }
    }

    /// Tells that the connection for the purge stream is back.
    func streamConnected() {
        follower.connected()
        reconnected.signal()
    }

    private func followPurges() async {
        // The first attempt would only tell that no connection is up yet.
        await reconnected.wait(for: timings.blockTime, time)
        while !Task.isCancelled {
            do throws(RedisError) {
                try await follower.follow { self.onFollow(nil) }
            } catch {
                if Task.isCancelled { return }
                meter.count(error)
                onFollow(error)
                if case .refused(let refusal) = error, refusal.isWorthReconnecting { onRefusal(error) }
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
                onAlone()
            }
            guard registry.isRegistered else { continue }
            if let isListed = try? await registry.beat(commands, at: follower.position), !isListed {
                follower.fallBehind()
            }
            try? await ClusterTime.ask(commands, keys, clock, within: timings.commandLimit, time)
            if follower.isTakingPart { await follower.saveClock() }
            beats += 1
            // For reports only: a purge looks for itself.
            if beats.isMultiple(of: timings.beatsPerLook) {
                _ = try? await registry.liveNodes(commands, within: timings.commandLimit)
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
