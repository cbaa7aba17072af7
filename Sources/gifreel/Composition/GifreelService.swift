package import Cache
internal import Fetch
internal import Foundation
package import HTTP
package import Logging
package import Media
internal import Prewarm
internal import PrometheusMetrics
internal import Renditions
package import Sandbox
internal import Settings
internal import SystemIO
internal import Web

/// The composition root: makes every room, connects them, starts and stops them.
package final class GifreelService: Sendable {
    private let rooms: Generation.Rooms
    private let current: CurrentGeneration
    private let server: HTTPServer
    private let meter: RequestMeter
    private let accessLog: AccessLogGate?

    /// Opens the cache and prepares everything; nothing listens yet.
    ///
    /// - Parameters:
    ///   - zygote: Forked before the process had a second thread.
    ///   - libraries: What it encodes with.
    ///   - clock: What freshness goes by.
    ///   - accessLog: Hears of finished requests as far as the log's level has it.
    ///   - droppedLogLines: The log lines that could not be written so far, per log.
    /// - Throws: Errors whose description is a sentence that says what to change.
    package init(
        configuration: ServiceConfiguration, zygote: Zygote, libraries: LinkedLibraries = .present,
        clock: CacheClock = .system, logger: Logger, accessLog: (any HTTPObserver)? = nil,
        droppedLogLines: @escaping @Sendable () -> [(log: String, lines: Int)] = { [] }
    ) throws {
        try libraries.check()
        let cache = try Cache(configuration: configuration.cache, clock: clock) { logger.warning("\($0)") }
        do {
            let registry = PrometheusRegistry(Families.instruments)
            let threads = WorkThreads(count: 1, limit: 64, name: "gifreel-desk")
            let prewarm = PrewarmQueue(
                limits: configuration.prewarm, journal: PrewarmJournal(cacheDirectory: configuration.cache.directory),
                threads: threads,
                meter: LabelledCounter(
                    Families.prewarmed, label: "result", values: ["hit", "new", "failed"], factory: registry),
                logger: logger)
            rooms = Generation.Rooms(
                cache: cache, fetcher: try Fetcher(configuration: configuration.fetch), clock: clock,
                pool: WorkerPool(zygote: zygote, configuration: configuration.pool),
                state: RenditionState(configuration.renditionLimits(pool: configuration.pool), clock: clock),
                limiter: RateLimiter(configuration.rateLimit, clock: clock), prewarm: prewarm, registry: registry,
                work: WorkMeter(factory: registry) { Problem($0).code },
                uploads: UploadAdmission(UploadAdmission.Limits(configuration)), threads: threads)
            zygote.onLoss { loss in logger.error("lost the zygote process", metadata: ["cause": "\(loss)"]) }
            let current = CurrentGeneration(Generation(configuration, rooms, logger: logger))
            self.current = current
            var http = configuration.http
            http.errorResponse = { [current] error in
                current.value.door.crossOrigin.applied(
                    to: ProblemDocument.response(Problem(error.status, error.code, error.sentence)))
            }
            let meter = RequestMeter(mounts: configuration.mounts.keys, factory: registry)
            self.meter = meter
            let gate = accessLog.map { AccessLogGate($0, isOpen: configuration.logLevel <= .info) }
            self.accessLog = gate
            server = try HTTPServer(
                configuration: http, handler: current, observer: ObserverList([meter] + (gate.map { [$0] } ?? [])))
            let readings = StateReadings(
                cache: cache, fetcher: rooms.fetcher, pool: rooms.pool, server: server, prewarm: prewarm,
                current: { current.value })
            registry.onCollect(readings.samples)
            registry.onCollect(ProcessReadings().samples)
            registry.onCollect {
                droppedLogLines().map { MetricSample(Families.droppedLogLines, $0.lines, [("log", $0.log)]) }
            }
        } catch {
            cache.close()
            throw error
        }
    }

    /// The TCP port, once started.
    package var port: Int? { server.port }

    /// Renditions that wait for a worker or have one.
    package var load: (running: Int, waiting: Int) { rooms.pool.load }

    /// Listens. From here on requests are answered.
    package func start() throws {
        rooms.prewarm.load()
        try server.start()
        let generation = current.value
        if let file = generation.configuration.portFile, let port = server.port {
            do throws(FileError) {
                try Files.write("\(port)\n", to: file)
            } catch {
                throw SettingsError("server.port_file: \(error)")
            }
        }
        rooms.fetcher.avoid(
            server.endpoints.compactMap { endpoint in
                guard case .tcp(let address, let port) = endpoint else { return nil }
                return (address, port)
            })
        generation.open()
        rooms.prewarm.start({ [current] in current.value.store }, describe: PrewarmFailure.init)
        let endpoints = server.endpoints.map(\.description).joined(separator: ", ")
        generation.logger.info("listening", metadata: ["at": "\(endpoints)", "version": "\(Gifreel.version)"])
    }

    /// Answers requests by other settings from now on. Requests in progress end by the old ones.
    ///
    /// - Parameter configuration: Made from ``ReloadPlan/settings``, so that settings that need a restart have their old value.
    package func reload(_ configuration: ServiceConfiguration, logger: Logger) throws {
        // First, since it throws before anything has changed.
        try rooms.fetcher.reconfigure(configuration.fetch)
        let next = Generation(configuration, rooms, logger: logger)
        rooms.state.apply(configuration.renditionLimits(pool: configuration.pool))
        if let limit = configuration.rateLimit { rooms.limiter.apply(limit) }
        next.open()
        accessLog?.set(isOpen: configuration.logLevel <= .info)
        meter.setMounts(configuration.mounts.keys)
        let previous = current.replace(with: next)
        // Responses that were prepared with the old fields must not be sent.
        if previous.configuration.web.headPolicy != configuration.web.headPolicy { rooms.cache.forgetHot() }
    }

    /// Ends in order: `/readyz` is 503 while connections are still accepted for the shutdown delay, so that a load balancer
    /// notices; then listening stops, what is in flight is answered, and every room closes.
    package func stop() async {
        let generation = current.value
        generation.door.become(.draining)
        let delay = generation.configuration.shutdownDelay
        if delay > .zero {
            generation.logger.info("not ready, and still answering", metadata: ["for": "\(delay)"])
            try? await Task.sleep(for: delay)
        }
        generation.logger.info("draining")
        rooms.prewarm.stop()
        await server.drain()
        rooms.fetcher.shutdown()
        // Both block for as long as their threads' work takes; by now hardly ever at all.
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async { [rooms] in
                rooms.threads.close()
                rooms.pool.close()
                rooms.cache.close()
                continuation.resume()
            }
        }
        generation.logger.info("stopped")
    }
}
