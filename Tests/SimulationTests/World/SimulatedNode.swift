import Logging
import Synchronization
import SystemIO

@testable import Fetch
@testable import Renditions
@testable import Store

/// The limits of the simulated service.
enum Limits {
    /// Seconds.
    static let freshFor: Int64 = 100
    static let staleFor: Int64 = 200
    static let longest: Int64 = 300
    /// Seconds that a fetch takes at most.
    static let fetch: Int64 = 100
}

/// One process of the service, from its start to its end: the parts that the composition root connects, over simulated ones.
final class SimulatedNode: Sendable {
    let cache: Cache
    let state: RenditionState
    let workers: SimulatedWorkers
    private let scheduler: SimulatedScheduler
    private let purger: Purges
    private let origin: SimulatedOrigin
    private let clock: TimeSource
    private let current: Mutex<RenditionPipeline?>
    private let keeper: SimulatedThreads
    private let phase = Mutex(Phase.running)

    private enum Phase: Sendable {
        case running
        /// No new events start.
        case stopping
        /// Its responses reach nobody.
        case crashed
    }

    init(
        _ configuration: CacheConfiguration, _ scheduler: SimulatedScheduler, origin: SimulatedOrigin,
        workers: SimulatedWorkers, clock: TimeSource
    ) throws {
        self.scheduler = scheduler
        self.origin = origin
        self.workers = workers
        self.clock = clock
        cache = try Cache(
            configuration: configuration, clock: clock,
            threads: CacheThreads(
                create: { count, limit, _ in SimulatedThreads(scheduler, count: count, limit: limit) },
                includeHousekeeping: false),
            purgeToken: { Hex.encode(scheduler.number(UInt64.min...UInt64.max)) },
            onStep: { _ in if scheduler.chance(0.5) { scheduler.pause() } })
        state = RenditionState(
            Self.limits(jobs: 12), cache: cache, clock: clock,
            executor: scheduler)
        purger = Purges(cache: cache, state: state, outbox: nil)
        keeper = SimulatedThreads(scheduler, count: 1, limit: 1)
        current = Mutex(nil)
        var rules = OriginRules()
        rules.maxFreshFor = Limits.longest
        reload(jobs: 12, rules: rules)
    }

    /// The pipeline of the settings in force.
    var pipeline: RenditionPipeline {
        guard let pipeline = current.withLock({ $0 }) else { preconditionFailure("a node has a pipeline from its start on") }
        return pipeline
    }

    /// Puts other settings into force.
    func reload(jobs: Int, rules: OriginRules) {
        state.apply(Self.limits(jobs: jobs), failureScope: "")
        let pipeline = RenditionPipeline(
            RenditionPipeline.Policy(originRules: rules, maxSourceBytes: 1000), state: state,
            cache: cache, clock: clock,
            fetch: { [self] url, validators, arriving async throws(FetchError) in
                try await origin.fetch(url, validators, arriving) { self.hasCrashed }
            },
            convert: { [self] source, rendition, flight async throws(RenditionError) in
                try await workers.convert(source, rendition, flight, cache) { self.hasCrashed }
            },
            logger: Logger(label: "simulation") { _ in SwiftLogNoOpLogHandler() })
        current.withLock { $0 = pipeline }
    }

    private static func limits(jobs: Int) -> RenditionState.Limits {
        RenditionState.Limits(
            queueTimeout: .seconds(30), fetchLifetime: .seconds(Limits.fetch), missLifetime: .seconds(240), jobs: jobs,
            bytes: 12_000, fetches: 64)
    }

    func purge(_ scope: PurgeScope) async throws(CacheError) {
        _ = try await purger.purge(scope)
    }

    /// Runs a round of housekeeping on a thread of the simulation, unless one is running.
    func keepHouse() {
        _ = keeper.submit { [cache] in cache.housekeeper.runRound() }
    }

    // MARK: End

    var isRunning: Bool { phase.withLock { $0 == .running } }
    var hasCrashed: Bool { phase.withLock { $0 == .crashed } }

    /// Ends the arrival of events. Those in progress go on.
    func stop() {
        phase.withLock { if $0 == .running { $0 = .stopping } }
    }

    /// Makes fetches and conversions in progress end soon, without responses.
    func crash() {
        phase.withLock { $0 = .crashed }
    }

    /// Closes the cache once nothing is in progress, and releases the pipeline, which refers to this node.
    func close() {
        cache.close()
        current.withLock { $0 = nil }
    }

    /// What a node must not have when nothing is in progress.
    var leaks: [String] {
        let load = state.admission.load
        var leaks: [String] = []
        if load != (0, 0) { leaks.append("admission counts \(load.jobs) jobs and \(load.bytes) bytes") }
        if !workers.isIdle { leaks.append("a worker is not free") }
        if state.missesInProgress > 0 { leaks.append("\(state.missesInProgress) flights are in progress") }
        if state.flights.waiterCount + state.uploadFlights.waiterCount > 0 { leaks.append("flights have callers") }
        return leaks
    }
}
