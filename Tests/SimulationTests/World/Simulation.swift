import SystemIO
import TestSupport

@testable import Store

/// Several lives of one node on one disk, as a seed decides. Not `Sendable`: the thread that runs it waits for all others.
final class Simulation {
    private let seed: UInt64
    private let root: String
    private let scheduler: SimulatedScheduler
    private let clock: SimulatedClock
    private let ledger = Ledger()
    private let disk: SimulatedDisk
    private let plan: SimulationPlan
    private var life = 0
    private var hadPowerLoss = false
    private var report: SimulationReport

    /// - Parameter root: An empty directory in memory.
    init(seed: UInt64, root: String) {
        self.seed = seed
        self.root = root
        var generator = SeededNumbers(seed: seed)
        plan = SimulationPlan(using: &generator)
        scheduler = SimulatedScheduler(seed: generator.next(), slowness: plan.slowness)
        clock = SimulatedClock(scheduler)
        disk = SimulatedDisk(root: root, seed: generator.next())
        report = SimulationReport(seed: seed)
    }

    /// Takes at least this number of steps, and then runs a last life without faults.
    func run(steps: Int) throws -> SimulationReport {
        disk.begin()
        defer { disk.end() }
        while scheduler.steps < steps, ledger.violations.isEmpty { try live() }
        if ledger.violations.isEmpty { try liveInPeace() }
        scheduler.close()
        report.steps = scheduler.steps
        report.calls = disk.calls
        report.trace = scheduler.trace
        report.counts = ledger.counts
        report.violations = ledger.violations
        report.events = ledger.events
        return report
    }

    // MARK: Lives

    /// A life with faults, which ends in order, by a kill or by a power loss.
    private func live() throws {
        if scheduler.chance(0.7) { disk.callsUntilCrash = scheduler.number(1...4000) }
        guard let node = start() else { return try restart(nil) }
        disk.faults = plan.faults
        let clients = SimulatedClients(scheduler, ledger, node, checksAge: !plan.setsClock)
        scheduler.repeatEvery(1...700, while: { node.isRunning }) { clients.startEvent() }
        scheduler.repeatEvery(900...1100, while: { node.isRunning }) { node.keepHouse() }
        if plan.setsClock { scheduler.repeatEvery(1...300_000, while: { node.isRunning }) { [clock] in clock.jump() } }
        let last = scheduler.steps + scheduler.number(200...6000)
        while scheduler.steps < last, !disk.isDead, ledger.violations.isEmpty, scheduler.step() {}
        try restart(node)
    }

    /// A life without faults, in which every rendition is requested and files and rows must come to agree.
    private func liveInPeace() throws {
        guard let node = start() else { return }
        SimulatedClients(scheduler, ledger, node, checksAge: !plan.setsClock).requestAll()
        for _ in 0..<2 {
            node.keepHouse()
            drain()
        }
        let files = try DirectoryEntries.files("\(directory)/objects").count
        let rows = (UInt8.min...UInt8.max).map { first in
            node.cache.context.query { try $0.names(ofObjectsIn: first) }?.count ?? 0
        }.reduce(0, +)
        if files != rows { ledger.violation("\(files) files for \(rows) objects") }
        let statistics = node.cache.statistics()
        // After a lost sync, the ledger may mix pages of different times, which SQLite does not detect.
        if statistics.objects != rows, plan.faults.lostSync == 0 {
            ledger.violation("\(statistics.objects) objects are counted, and \(rows) are stored")
        }
        if statistics.diskBytes > statistics.limitBytes { ledger.violation("\(statistics.diskBytes) bytes are stored") }
        node.stop()
        check(node)
        node.close()
    }

    private var directory: String { "\(root)/\(life)" }

    /// Returns nil if the process crashes meanwhile.
    private func start() -> SimulatedNode? {
        var configuration = CacheConfiguration()
        configuration.directory = directory
        configuration.minFreeBytes = 0
        configuration.maxBytes = 1 << 20
        configuration.freshFor = Limits.freshFor
        configuration.staleFor = Limits.staleFor
        configuration.hotEntries = 6
        do {
            return try SimulatedNode(
                configuration, scheduler, origin: SimulatedOrigin(scheduler, ledger, failureRate: plan.failureRate),
                workers: SimulatedWorkers(scheduler, ledger, count: 2, failureRate: plan.failureRate), clock: clock.clock)
        } catch {
            if !disk.isDead { ledger.violation("a start failed: \(error)") }
            return nil
        }
    }

    // MARK: Ends

    /// Ends a life and prepares the disk for the next one.
    private func restart(_ node: SimulatedNode?) throws {
        let isCrash = disk.isDead || scheduler.chance(0.5)
        disk.faults = SimulatedDisk.Faults()
        disk.callsUntilCrash = nil
        node?.stop()
        if isCrash {
            report.crashes += 1
            disk.crash()
            node?.crash()
        }
        drain()
        if let node { check(node) }
        node?.close()
        ledger.note("life \(life) ended, \(isCrash ? "crashed" : "in order")")
        let isPowerLoss = isCrash && scheduler.chance(0.6)
        let survival = scheduler.element(of: [0, 0.5, 0.9, 1])
        if isPowerLoss { ledger.note("power loss, survival \(survival)") }
        let path = directory
        life += 1
        try disk.remount(path, after: isPowerLoss ? .powerLoss(survival: survival) : .process, at: directory)
        if isPowerLoss { hadPowerLoss = true }
        if plan.faults.lostSync == 0 { try checkFiles() }
        ledger.restarted(keepsPurges: !isPowerLoss || plan.faults.lostSync == 0)
    }

    private func drain() {
        while scheduler.step() {}
    }

    /// Checks a node that has nothing more to do.
    private func check(_ node: SimulatedNode) {
        if ledger.pending > 0 { ledger.violation("\(ledger.pending) requests have no response") }
        for leak in node.leaks { ledger.violation(leak) }
        let corrupt = node.cache.statistics().corrupt
        // A power loss may lose the row of an object that replaced an evicted one of the same id. Its file then contradicts the
        // row of the evicted one.
        if corrupt > 0, plan.faults.lostSync == 0, !hadPowerLoss { ledger.violation("\(corrupt) stored files were damaged") }
    }

    /// Checks what the next start finds: a name never leads to a part of a file.
    private func checkFiles() throws {
        // It is missing if the first start crashed before creating it, or if a power loss removed it.
        guard Files.isDirectory("\(directory)/objects") else { return }
        for path in try DirectoryEntries.files("\(directory)/objects") {
            let bytes = DirectoryEntries.contents(of: path)
            if SourceContents(bytes) == nil, RenditionContents(bytes) == nil { ledger.violation("\(path) is not complete") }
        }
    }
}

/// The conditions of a simulation.
struct SimulationPlan: Sendable {
    let faults: SimulatedDisk.Faults
    /// The probability that a step of a fetch or a conversion fails.
    let failureRate: Double
    /// See ``SimulatedScheduler/init(seed:slowness:)``.
    let slowness: Double
    let setsClock: Bool

    init(using generator: inout SeededNumbers) {
        func oneOf(_ values: Double...) -> Double { values[Int.random(in: 0..<values.count, using: &generator)] }
        faults = SimulatedDisk.Faults(
            failure: oneOf(0, 0, 0.001, 0.01), full: oneOf(0, 0, 0.01, 0.1), lostSync: oneOf(0, 0, 0, 0.3))
        failureRate = oneOf(0, 0.02, 0.2)
        slowness = oneOf(0, 0, 0.05, 0.3)
        setsClock = oneOf(0, 0, 0, 1) == 1
    }
}

/// What a seed gave.
struct SimulationReport: Sendable {
    let seed: UInt64
    var steps = 0
    /// Calls of the disk.
    var calls = 0
    var trace: UInt64 = 0
    var crashes = 0
    var counts = Ledger.Counts()
    /// The broken rules.
    var violations: [String] = []
    /// The latest events.
    var events: [String] = []
}
