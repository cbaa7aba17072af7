import Foundation
import Ledger
import SystemIO
import TestSupport
import Testing

@testable import Cluster

/// A node with a model of a local cache: versions of sources, forgotten by purges.
///
/// `@unchecked Sendable`: used on the scheduler's thread only.
final class SimulatedNode: @unchecked Sendable {
    /// The node's disk, which outlives a crash.
    final class Disk: @unchecked Sendable {
        let ledger: Ledger
        private let directory: String
        /// The version of each source that is stored.
        var versions: [String: Int] = [:]
        /// The version in which each source was missing, if that is remembered.
        var failures: [String: Int] = [:]
        /// Grows with each purge.
        var epoch = 0

        init() throws {
            // In memory, where a sync takes no time.
            directory = "/dev/shm/gifreel-cluster-\(UUID().uuidString)"
            try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
            ledger = try Ledger(directory: directory, owners: [PurgeTables.owned])
        }

        deinit {
            ledger.close()
            try? FileManager.default.removeItem(atPath: directory)
        }

        func forget(_ scope: ClusterPurge, madeAt time: Int64?, _ place: Ledger.Change) {
            epoch += 1
            switch scope {
            case .url(let url): (versions[url], failures[url]) = (nil, nil)
            case .prefix, .object, .all: (versions, failures) = ([:], [:])
            }
            record(place)
        }

        func record(_ place: Ledger.Change) {
            do { try ledger.write(.normal, place) } catch { Issue.record(error) }
        }
    }

    private final class Life: @unchecked Sendable {
        var isOver = false
        var hasCaughtUp = false
    }

    /// Runs work at once, so that the scheduler decides the order.
    private struct ImmediateWork: BlockingWork {
        func submit(_ work: @escaping Work) -> Bool {
            work()
            return true
        }

        func close() {}
    }

    let disk: Disk
    let lane: Scheduler.Lane
    let links: [SimulatedLink]
    let core: ClusterNode
    private let scheduler: Scheduler
    private let life = Life()
    var isDead: Bool { life.isOver }
    /// Whether it has applied the purges that it missed before it started.
    var hasCaughtUp: Bool { life.hasCaughtUp }
    /// Messages in transit on the subscription.
    private var messages: [[UInt8]] = []

    init(_ name: String, _ scheduler: Scheduler, _ server: SimulatedRedis, _ disk: Disk, missing: Break?) {
        self.disk = disk
        self.scheduler = scheduler
        lane = scheduler.lane()
        links = [SimulatedLink(scheduler, server, lane), SimulatedLink(scheduler, server, lane)]
        let (lane, life) = (lane, life)
        let handlers = PurgeHandlers(
            purgeLocalCache: { scope, time, place in
                switch missing {
                case .acknowledgesBeforeApplying:
                    Task(executorPreference: lane) {
                        await Self.pause(scheduler, 4)
                        disk.forget(scope, madeAt: time, place)
                    }
                default:
                    await Self.pause(scheduler, 2)
                    // A crash leaves both or none.
                    if !life.isOver { disk.forget(scope, madeAt: time, place) }
                    await Self.pause(scheduler, 2)
                }
                return PurgeCounts(purged: 1, bytes: 1)
            },
            revalidateEverything: { _ in disk.forget(.all, madeAt: nil) { _ in } },
            record: { if !life.isOver { disk.record($0) } })
        core = ClusterNode(
            name: name, keys: ClusterKeys(name: "sim"), commands: BrokenCommands(base: links[0], missing: missing),
            stream: BrokenCommands(base: links[1], missing: missing), ledger: disk.ledger, disk: ImmediateWork(),
            handlers: handlers, time: scheduler.time, meter: ClusterMeter(), executor: lane,
            onFailure: { url, record, isCurrent in
                let epoch = disk.epoch
                guard case .failure(let code, _) = record.outcome, let version = Int(code), isCurrent(),
                    disk.epoch == epoch || missing == .cacheIgnoresPurges
                else { return }
                disk.failures[url] = version
            },
            onFollow: { if $0 == nil { life.hasCaughtUp = true } })
        scheduler.transports.append { [unowned self] in possibleActions() }
        core.start()
    }

    /// Gives other tasks up to `count` opportunities.
    static func pause(_ scheduler: Scheduler, _ count: Int) async {
        for _ in 0..<Int.random(in: 0...count, using: &scheduler.numbers) { await Task.yield() }
    }

    /// Publishes a message to this node's subscription, which may lose it.
    func publish(_ message: [UInt8]) {
        if !isDead && !scheduler.chance(6) { messages.append(message) }
    }

    /// Ends the node as SIGKILL does. Its tasks go on without effect.
    func kill() {
        life.isOver = true
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
