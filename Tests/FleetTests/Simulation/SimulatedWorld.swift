import SystemIO
import TestSupport

@testable import Fleet
@testable import Store

/// Two nodes, a server, an origin whose files change, and visitors: one order of events, decided by a seed.
///
/// `@unchecked Sendable`: used on the scheduler's thread only.
final class SimulatedWorld: @unchecked Sendable {
    /// What went wrong, and how much happened.
    struct Outcome: Sendable {
        var violations: [String] = []
        var acknowledgedPurges = 0
        var records = 0
        var followed = 0
        var led = 0
        var alone = 0
        var failures = 0
        /// Purges that took effect on a node whose disk stalled.
        var arrived = 0
        /// Faults of the server.
        var losses = 0
    }

    private struct Leading {
        let node: SimulatedNode
        let lease: Lease
        /// The faults of the server before the lease was asked for. A server that restarts loses leases.
        let losses: Int
    }

    private let seed: UInt64
    private let missing: Break?
    private let disksStall: Bool
    private let scheduler: Scheduler
    private let server: SimulatedRedis
    private var nodes: [SimulatedNode] = []
    private var generation = 0
    private var graveyard: [SimulatedNode] = []
    private let urls = ["https://o.test/1", "https://o.test/2"]
    /// The version that the origin gives.
    private var versions: [String: Int] = [:]
    /// The oldest version that may be given out, by acknowledged purges.
    private var floors: [String: Int] = [:]
    /// When the latest purge of a source was acknowledged by all nodes.
    private var completed: [String: Duration] = [:]
    private var leading: [Leading] = []
    private var open = 0
    /// What nodes have stored: the node, the source, the version, and when the request to the origin began.
    private var kept: [(node: SimulatedNode, url: String, version: Int, began: Duration)] = []
    /// When purges of a source were accepted.
    private var purgeTimes: [String: Duration] = [:]
    /// That of the latest purge of ``checkArrivals()``.
    private var report: PurgeReport?
    private(set) var outcome = Outcome()

    init(seed: UInt64, missing: Break? = nil, disksStall: Bool = false) throws {
        self.seed = seed
        self.missing = missing
        self.disksStall = disksStall
        scheduler = Scheduler(seed: seed)
        server = SimulatedRedis()
        let skews: [Duration] = [
            .zero, [.zero, .seconds(300), .seconds(-300)].randomElement(using: &scheduler.numbers) ?? .zero,
        ]
        nodes = try zip(["a", "b"], skews).map { name, skew in
            try SimulatedNode(name, scheduler, server, SimulatedNode.Disk(skew: skew), missing: missing)
        }
        for url in urls { (versions[url], floors[url]) = (1, 0) }
    }

    func run() -> Outcome {
        var left = Int.random(in: 12...30, using: &scheduler.numbers)
        var steps = 0
        // Most orders begin with nodes that have joined.
        if !scheduler.chance(4) {
            while steps < 3000, !nodes.allSatisfy(\.core.purger.isTakingPart) {
                step()
                steps += 1
            }
        }
        while left > 0, steps < 60_000 {
            step()
            steps += 1
            if scheduler.chance(25) {
                begin()
                left -= 1
            }
            if scheduler.chance(250) { try? fault() }
        }
        // A lease that a dead node has left, and that nobody visits, would not be noticed.
        for node in nodes { for url in urls { begin(node, url, isPurge: false) } }
        // Without faults, every visitor is answered in bounded time.
        waitForCallers()
        for key in server.unledRecords { violation("a record of \(key) without a lease") }
        checkKept()
        for _ in 0..<200 { step() }
        waitForCallers()
        if disksStall { checkArrivals() }
        for node in nodes { node.kill() }
        for _ in 0..<300 { step() }
        return outcome
    }

    private func waitForCallers() {
        let end = scheduler.now + .seconds(60)
        while open > 0, scheduler.now < end { step() }
        if open > 0 { violation("\(open) callers wait without end") }
    }

    private func step() {
        scheduler.step()
        for node in nodes where node.core.purger.isTakingPart { node.lastPart = scheduler.now }
        let messages = server.published
        server.published = []
        for message in messages { for node in nodes { node.publish(message) } }
    }

    private func violation(_ text: String) {
        outcome.violations.append("\(seed): \(text)")
    }

    /// Begins something that visitors or administrators do.
    private func begin() {
        let node = nodes[Int.random(in: 0..<nodes.count, using: &scheduler.numbers)]
        let url = scheduler.chance(4) ? urls[1] : urls[0]
        begin(node, url, isPurge: scheduler.chance(6))
    }

    private func begin(_ node: SimulatedNode, _ url: String, isPurge: Bool) {
        open += 1
        Task(executorPreference: node.lane) { [self] in
            if isPurge { await purge(node, url) } else { await visit(node, url) }
            open -= 1
        }
    }

    private func fault() throws {
        if disksStall, scheduler.chance(3) {
            nodes[Int.random(in: 0..<nodes.count, using: &scheduler.numbers)].stall(for: time(9000))
            return
        }
        if scheduler.chance(4) {
            outcome.losses += 1
            switch Int.random(in: 0...6, using: &scheduler.numbers) {
            // A server that restarts empty, or without its latest entries, and a replica with another clock.
            case 0: server.restart(losing: .max)
            case 1: server.restart(losing: Int.random(in: 1...3, using: &scheduler.numbers))
            // A clock that changes between the first questions of two nodes would have them disagree for good.
            case 2 where nodes.allSatisfy(\.knowsTime):
                server.clock += [.seconds(240), .seconds(-240)].randomElement(using: &scheduler.numbers) ?? .zero
            // An operator removes everything, the stream, or the list of nodes, and no node loses its connection. A node that goes on
            // reading finds a new stream only if its ids are later.
            case 3 where !server.isBehind: return server.restart(losing: .max)
            case 4 where !server.isBehind: return server.trim(to: 0)
            case 5: return server.forgetNodes()
            default: server.trim(to: 1)
            }
            for node in nodes { for link in node.links { link.cut(for: time(500)) } }
            return
        }
        let node = nodes[Int.random(in: 0..<nodes.count, using: &scheduler.numbers)]
        switch Int.random(in: 0...5, using: &scheduler.numbers) {
        case 0, 1: node.links[0].cut(for: time(1500))
        case 2: node.links[1].cut(for: time(9000))
        case 3: node.lane.pausedUntil = scheduler.now + time(9000)
        // The death of a node that leads is the more interesting one.
        default: try kill(leading.last { !$0.node.isDead }?.node ?? node)
        }
    }

    /// Ends a node, and starts one on its disk.
    private func kill(_ victim: SimulatedNode) throws {
        guard let index = nodes.firstIndex(where: { $0 === victim }) else { return }
        victim.kill()
        graveyard.append(victim)
        generation += 1
        victim.disk.failures = [:]
        nodes[index] = try SimulatedNode("r\(generation)", scheduler, server, victim.disk, missing: missing)
    }

    /// Most faults are short, so that much goes on while and after they last.
    private func time(_ milliseconds: Int) -> Duration {
        let limit = scheduler.chance(3) ? milliseconds : milliseconds / 10
        return .milliseconds(Int.random(in: 0...limit, using: &scheduler.numbers))
    }

    // MARK: Visitors

    private func visit(_ node: SimulatedNode, _ url: String) async {
        let floor = floors[url] ?? 0
        // A node that has lost the server for as long as nodes count as live may give out what it has stored; one that has started
        // asks the origin until it has caught up.
        let isCounted = (completed[url] ?? .zero) < node.lastPart + ClusterTimings().nodeLifetime
        let isChecked = isCounted || !node.hasCaughtUp
        if let version = await node.stored(url) {
            if isChecked { check(node, version, floor, "stored") }
            return
        }
        if node.hasCaughtUp, let version = node.disk.failures[url] {
            if isChecked { check(node, version, floor, "missing") }
            return
        }
        let (epoch, began, losses) = (node.cache.epoch, scheduler.now, outcome.losses)
        let wasTimed = node.knowsTime
        switch await node.core.flights.findOrLead(url == urls[0] ? "aa" : "bb", sourceURL: url, outdated: nil) {
        case .found(let record, let isFollowed):
            if isFollowed { outcome.followed += 1 } else { outcome.records += 1 }
            let text =
                switch record.outcome {
                case .object(let name): name.id.description
                case .failure(let code, _): code
                }
            guard let version = Int(text) else { return violation("a record without a version") }
            check(node, version, floor, isFollowed ? "followed" : "found")
            await SimulatedNode.pause(scheduler, 2)
            await store(node, url, version, epoch.began(at: record.began), since: nil)
        case .alone:
            outcome.alone += 1
            let version = versions[url] ?? 0
            await SimulatedNode.pause(scheduler, 3)
            if scheduler.chance(3) { await work() }
            await store(node, url, version, epoch, since: wasTimed ? began : nil)
        case .lead(let lease):
            outcome.led += 1
            await lead(node, url, lease, epoch, losses, since: wasTimed ? began : nil)
        }
    }

    /// - Parameter began: When the node noted the epoch; nil if it did not know the time.
    private func lead(
        _ node: SimulatedNode, _ url: String, _ lease: Lease, _ epoch: Epoch, _ losses: Int, since began: Duration?
    ) async {
        for other in leading where other.lease.key == lease.key && !other.node.isDead && other.lease.isHeld {
            guard [other.losses, losses] == [outcome.losses, outcome.losses] else { continue }
            if lease.isHeld && !node.isDead { violation("two nodes lead \(lease.key)") }
        }
        leading.append(Leading(node: node, lease: lease, losses: losses))
        defer { leading.removeAll { $0.lease === lease } }
        await SimulatedNode.pause(scheduler, 2)
        let version = versions[url] ?? 0
        await work()
        // Before it has stored anything: the next visitor asks for a lease.
        if scheduler.chance(10) { try? kill(node) }
        await store(node, url, version, epoch, since: began)
        if scheduler.chance(8) { return await lease.release() }
        let isMissing = Self.isMissing(version)
        let record = SharedRecord(
            outcome: isMissing
                ? .failure(code: String(version), details: []) : .object(.test(Self.id(of: version))),
            times: OriginTimes(fetchedAt: 1))
        _ = await lease.complete(record, lifetime: .seconds(100), isOfSource: isMissing)
    }

    /// The id whose digits are those of a version.
    private static func id(of version: Int) -> ObjectID {
        let digits = String(version)
        guard let id = ObjectID(hex: String(repeating: "0", count: 64 - digits.count) + digits) else { preconditionFailure() }
        return id
    }

    /// Whether the origin has no file in this version.
    private static func isMissing(_ version: Int) -> Bool { version % 3 == 0 }

    /// Encodes for a while: longer than a lease in some orders.
    private func work() async {
        let pause = AsyncSignal()
        await pause.wait(for: .milliseconds(Int.random(in: 0...3500, using: &scheduler.numbers)), scheduler.time)
    }

    private func store(
        _ node: SimulatedNode, _ url: String, _ version: Int, _ epoch: Epoch, since began: Duration?
    ) async {
        guard !node.isDead else { return }
        if Self.isMissing(version) {
            guard !node.cache.purges.overtook(epoch, sourceURL: url) || missing == .cacheIgnoresPurges else { return }
            outcome.failures += 1
            node.disk.failures[url] = version
        } else if await node.store(url, version, epoch) {
            // It replaces what was stored, also that of work that began later.
            kept.removeAll { $0.node === node && $0.url == url }
            if let began { kept.append((node, url, version, began)) }
        }
    }

    /// Nothing that was requested after all purges of its source were accepted is gone: the bounds of clocks are a second apart at most.
    private func checkKept() {
        for (node, url, version, began) in kept
        where !node.isDead && began > (purgeTimes[url] ?? .zero) + .seconds(1) && nodes.contains(where: { $0 === node }) {
            open += 1
            Task(executorPreference: node.lane) { [self] in
                if await !node.holds(url, version) {
                    violation("version \(version) of \(url), requested at \(began), was removed")
                }
                open -= 1
            }
        }
    }

    /// Purges of a node take effect on another one although its disk writes none of them, and are not complete.
    private func checkArrivals() {
        let (one, two) = (nodes[0], nodes[1])
        func wait(until isMet: () -> Bool) -> Bool {
            let end = scheduler.now + .seconds(60)
            while !isMet(), scheduler.now < end { step() }
            return isMet()
        }
        guard wait(until: { nodes.allSatisfy(\.core.purger.isTakingPart) }) else { return }
        two.stall(for: .seconds(1_000_000))
        for url in urls {
            report = nil
            Task(executorPreference: one.lane) { [self] in report = await one.core.purger.broadcast(.url(url)) }
            let hasArrived = wait { report?.id.map(two.cache.purges.isKnown) ?? false }
            if hasArrived { outcome.arrived += 1 } else { violation("a purge waits for a disk that stalls") }
            if report?.isComplete == true, two.core.purger.isTakingPart {
                violation("a purge is complete without a disk that stalls")
            }
        }
    }

    private func check(_ node: SimulatedNode, _ version: Int, _ floor: Int, _ how: String) {
        if version < floor, !node.isDead {
            violation("version \(version) \(how) after an acknowledged purge of all before \(floor)")
        }
    }

    private func purge(_ node: SimulatedNode, _ url: String) async {
        let version = (versions[url] ?? 0) + 1
        versions[url] = version
        await SimulatedNode.pause(scheduler, 2)
        // A node that has never reached the server knows the time to 10 minutes.
        purgeTimes[url] = scheduler.now + (node.knowsTime ? .zero : .seconds(1200))
        var report = await node.core.purger.broadcast(.url(url))
        let pause = AsyncSignal()
        // The caller looks how far it is, for a while.
        for _ in 0..<10 where report.acknowledged != report.nodes && !node.isDead {
            await pause.wait(for: .seconds(1), scheduler.time)
            guard let id = report.id, let progress = try? await node.core.purger.progress(of: id) else { continue }
            report = progress
        }
        guard report.acknowledged == report.nodes, !node.isDead else { return }
        outcome.acknowledgedPurges += 1
        floors[url] = max(floors[url] ?? 0, version)
        completed[url] = scheduler.now
    }
}
