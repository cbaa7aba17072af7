import Foundation
import SystemIO
import TestSupport
import Testing

@testable import Fleet
@testable import Store

/// A node with the store of production, on a disk in memory, and clocks of its own.
///
/// `@unchecked Sendable`: used on the scheduler's thread only.
final class SimulatedNode: @unchecked Sendable {
    /// The node's disk, which outlives a crash.
    final class Disk: @unchecked Sendable {
        let directory: String
        /// What differs between the wall clock of the machine and that of the world.
        let skew: Duration
        /// The version in which each source was missing, if that is remembered.
        var failures: [String: Int] = [:]

        init(skew: Duration) throws {
            // In memory, where a sync takes no time.
            directory = "/dev/shm/gifreel-cluster-\(UUID().uuidString)"
            self.skew = skew
            try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        }

        deinit { try? FileManager.default.removeItem(atPath: directory) }
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
    let cache: Cache
    let lane: Scheduler.Lane
    let links: [SimulatedLink]
    let core: Cluster
    private let scheduler: Scheduler
    private let missing: Break?
    private let life = Life()
    /// Writes purges.
    private let purgeThread = StallingDisk()
    private var resumption: (any AnyObject & Sendable)?
    var isDead: Bool { life.isOver }
    /// Whether it has applied the purges that it missed before it started.
    var hasCaughtUp: Bool { life.hasCaughtUp }
    /// When it last took part in the cluster.
    var lastPart = Duration.zero
    /// Whether it has ever asked the server for the time.
    var knowsTime: Bool { cache.sharedClock.known != nil }
    /// Messages in transit on the subscription.
    private var messages: [[UInt8]] = []

    init(_ name: String, _ scheduler: Scheduler, _ server: SimulatedRedis, _ disk: Disk, missing: Break?) throws {
        self.disk = disk
        self.scheduler = scheduler
        self.missing = missing
        lane = scheduler.lane()
        links = [SimulatedLink(scheduler, server, lane), SimulatedLink(scheduler, server, lane)]
        let (life, world, skew) = (life, scheduler.time, disk.skew)
        let time = TimeSource(
            unixNanoseconds: { world.unixNanoseconds() + Int64(skew / .nanoseconds(1)) },
            monotonicNanoseconds: world.monotonicNanoseconds, timers: { world.after($0, $1) })
        var configuration = CacheConfiguration()
        configuration.directory = disk.directory
        configuration.minFreeBytes = 0
        let threads = CacheThreads(
            create: { [purgeThread] _, _, name -> any BlockingWork in name == "cache-purge" ? purgeThread : ImmediateWork() },
            includeHousekeeping: false)
        let cache = try Cache(
            configuration: configuration, owners: [PurgeTables.owned], clock: time, threads: threads, onStep: nil)
        self.cache = cache
        cache.holdAliases()
        cache.observePurges { scope in disk.failures = disk.failures.filter { !scope.covers($0.key) } }
        var handlers = ClusterHandlers { doubt in
            await Self.pause(scheduler, 2)
            if !life.isOver, missing != .gapsAreIgnored { await cache.revalidateAll(doubt) }
            disk.failures = [:]
        }
        handlers.onFailure = { url, record, isCurrent in
            let epoch = cache.epoch
            guard case .failure(let code, _) = record.outcome, let version = Int(code), isCurrent(),
                !cache.purges.overtook(epoch, sourceURL: url) || missing == .cacheIgnoresPurges
            else { return }
            disk.failures[url] = version
        }
        handlers.onFollow = { life.hasCaughtUp = true }
        let context = ClusterContext(
            commands: BrokenCommands(base: links[0], missing: missing, name: name), keys: ClusterKeys(name: "sim"),
            nodeName: name, timings: ClusterTimings(), time: time, meter: ClusterMeter())
        core = Cluster(
            context, stream: BrokenCommands(base: links[1], missing: missing, name: name), cache: cache, disk: ImmediateWork(),
            reporter: StateReporter(server: "sim", onChange: { _ in }), handlers: handlers, executor: lane)
        scheduler.transports.append { [unowned self] in possibleActions() }
        core.start { _ in }
    }

    // MARK: The store

    private func key(_ url: String) -> AliasKey { AliasKey(sourceURL: url, rendition: "mp4") }

    /// The version of a source that may be given out without a question to its origin.
    func stored(_ url: String) async -> Int? {
        guard !isDead, let found = (try? await cache.rendition(for: key(url), countsMiss: true)) ?? nil else { return nil }
        if case .fresh = cache.freshness(of: found) { return Int(found.facts.first ?? 0) }
        return missing == .servesBeforeCatchingUp ? Int(found.facts.first ?? 0) : nil
    }

    /// Whether the version of a source is in the store, fresh or not.
    func holds(_ url: String, _ version: Int) async -> Bool {
        guard !isDead, let found = (try? await cache.rendition(for: key(url), countsMiss: true)) ?? nil else { return false }
        return Int(found.facts.first ?? 0) >= version
    }

    /// Stores a version of a source, unless a purge overtook it.
    func store(_ url: String, _ version: Int, _ noted: Epoch) async -> Bool {
        var epoch = noted
        switch missing {
        case .cacheIgnoresPurges: epoch = cache.epoch
        case .fetchesAreTimedByTheirEnd: epoch = Epoch(number: noted.number, began: cache.sharedClock.earliest)
        default: break
        }
        guard !isDead, let staged = try? await cache.stage(expecting: 0) else { return false }
        let bytes = Array("\(url) \(version)".utf8)
        _ = bytes.withUnsafeBytes { write(staged.number, $0.baseAddress, $0.count) }
        let alias = AliasRecord(key: key(url), sourceURL: url, rendition: "mp4", times: OriginTimes(fetchedAt: 1000))
        let id = ObjectID(
            source: bytes.withUnsafeBytes { SourceDigest(of: $0) }, rendition: "mp4", encoderVersion: "1")
        let outcome = try? await cache.publish(
            staged, as: id, fileExtension: "mp4", facts: [UInt8(truncatingIfNeeded: version)], alias: alias, epoch: epoch,
            storing: true)
        switch outcome {
        case .stored, .existing: return true
        case .unstored, nil: return false
        }
    }

    /// Gives other tasks up to `count` opportunities.
    static func pause(_ scheduler: Scheduler, _ count: Int) async {
        for _ in 0..<Int.random(in: 0...count, using: &scheduler.numbers) { await Task.yield() }
    }

    /// Publishes a message to this node's subscription, which may lose it. That of a new node only adds to a number here, and
    /// arrives at once.
    func publish(_ message: [UInt8]) {
        if isDead { return }
        if case .registered = ClusterMessage(message) { return core.received(message) }
        if !scheduler.chance(6) { messages.append(message) }
    }

    /// Lets the disk write no purge for a while.
    func stall(for time: Duration) {
        purgeThread.stall()
        resumption = scheduler.after(time) { [purgeThread] in purgeThread.resume() }
    }

    /// Ends the node as SIGKILL does. Its tasks go on without effect.
    func kill() {
        life.isOver = true
        core.stop()
        for link in links {
            link.isDead = true
            link.cut(for: .seconds(1_000_000))
        }
        cache.close()
        purgeThread.resume()
    }

    private func possibleActions() -> [() -> Void] {
        guard !messages.isEmpty, lane.pausedUntil <= scheduler.now else { return [] }
        return [{ [unowned self] in core.received(messages.removeFirst()) }]
    }
}
