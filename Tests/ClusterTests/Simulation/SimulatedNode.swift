import TestSupport

@testable import Cluster

/// A node with a model of a local cache: versions of sources, forgotten by purges.
///
/// `@unchecked Sendable`: used on the scheduler's thread only.
final class SimulatedNode: @unchecked Sendable {
    /// The node's disk, which outlives a crash.
    final class Disk: PurgeMemory, @unchecked Sendable {
        var saved: SavedPurges?
        /// The version of each source that is stored.
        var versions: [String: Int] = [:]
        /// The version in which each source was missing, if that is remembered.
        var failures: [String: Int] = [:]
        /// Grows with each purge.
        var epoch = 0

        func load() async -> SavedPurges? { saved ?? SavedPurges() }

        func save(_ saved: SavedPurges) async -> Bool {
            self.saved = saved
            return true
        }

        func append(_ scope: ClusterPurge) async -> Bool {
            saved?.append(scope)
            return saved != nil
        }

        func isCurrent() async -> Bool { true }
    }

    let disk: Disk
    let lane: Scheduler.Lane
    let links: [SimulatedLink]
    let core: ClusterNode
    private let scheduler: Scheduler
    var isDead = false
    /// Messages in transit on the subscription.
    private var messages: [[UInt8]] = []

    init(_ name: String, _ scheduler: Scheduler, _ server: SimulatedRedis, _ disk: Disk, missing: Break?) {
        self.disk = disk
        self.scheduler = scheduler
        lane = scheduler.lane()
        links = [SimulatedLink(scheduler, server, lane), SimulatedLink(scheduler, server, lane)]
        let lane = lane
        let handlers = PurgeHandlers(
            purgeLocalCache: { scope in
                if missing == .acknowledgesBeforeApplying {
                    Task(executorPreference: lane) {
                        await Self.pause(scheduler, 4)
                        Self.forget(scope, disk)
                    }
                } else {
                    await Self.pause(scheduler, 2)
                    Self.forget(scope, disk)
                    await Self.pause(scheduler, 2)
                }
                return PurgeCounts(purged: 1, bytes: 1)
            },
            revalidateEverything: { Self.forget(.all, disk) })
        core = ClusterNode(
            name: name, keys: ClusterKeys(name: "sim"), commands: BrokenCommands(base: links[0], missing: missing),
            stream: BrokenCommands(base: links[1], missing: missing), memory: disk, handlers: handlers, time: scheduler,
            meter: ClusterMeter(), executor: lane,
            onFailure: { url, record, isCurrent in
                let epoch = disk.epoch
                guard case .failure(let code, _) = record.outcome, let version = Int(code), isCurrent(),
                    disk.epoch == epoch || missing == .cacheIgnoresPurges
                else { return }
                disk.failures[url] = version
            })
        scheduler.transports.append { [unowned self] in possibleActions() }
        core.start()
    }

    /// Gives other tasks up to `count` opportunities.
    static func pause(_ scheduler: Scheduler, _ count: Int) async {
        for _ in 0..<Int.random(in: 0...count, using: &scheduler.numbers) { await Task.yield() }
    }

    private static func forget(_ scope: ClusterPurge, _ disk: Disk) {
        disk.epoch += 1
        switch scope {
        case .url(let url): (disk.versions[url], disk.failures[url]) = (nil, nil)
        case .prefix, .object, .all: (disk.versions, disk.failures) = ([:], [:])
        }
    }

    /// Publishes a message to this node's subscription, which may lose it.
    func publish(_ message: [UInt8]) {
        if !isDead && !scheduler.chance(6) { messages.append(message) }
    }

    /// Ends the node as SIGKILL does. Its tasks go on without effect.
    func kill() {
        isDead = true
        core.stop()
        for link in links {
            link.isDead = true
            link.cut(for: .seconds(1_000_000))
        }
    }

    private func possibleActions() -> [() -> Void] {
        guard !messages.isEmpty, lane.pausedUntil <= scheduler.now else { return [] }
        return [{ [unowned self] in core.received(messages.removeFirst()) }]
    }
}
