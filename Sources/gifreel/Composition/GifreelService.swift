internal import Fetch
internal import Fleet
internal import Foundation
package import HTTP
internal import HTTPClient
package import Logging
package import Media
internal import Prewarm
internal import Renditions
package import Sandbox
internal import Settings
internal import Store
internal import Synchronization
package import SystemIO
internal import Telemetry
internal import Web

/// The composition root of the server: creates all parts, connects them, starts and stops them.
package final class GifreelService: Sendable {
    private let outdatedPackages: [OutdatedPackage]
    let core: RenditionCore
    private let web: WebHandler.Dependencies
    private let webhookSender: Fetcher
    /// The client for the servers that the settings name: hooks and the collector of traces.
    private let operatorClient: HTTPClient
    private let traces: TraceExport
    private let current: CurrentRevision
    private let server: HTTPServer
    private let requestMeter: RequestMeter
    private let accessLog: AccessLogGate?

    /// Opens the cache and creates all parts. Nothing listens yet.
    ///
    /// - Parameters:
    ///   - zygote: Forked before the process had a second thread.
    ///   - accessLog: Observes finished requests while the log level permits.
    ///   - droppedLogLines: The log lines that could not be written so far, per log.
    /// - Throws: Errors whose description is a sentence that says what to change.
    package init(
        configuration: ServiceConfiguration, zygote: Zygote, libraries: LinkedLibraries = .present,
        packages: LinkedPackages = .program, clock: TimeSource = .system, logger: Logger, accessLog: (any HTTPObserver)? = nil,
        droppedLogLines: @escaping @Sendable () -> [(log: String, lines: Int)] = { [] }
    ) throws {
        try libraries.check()
        let outdatedPackages = packages.outdated()
        self.outdatedPackages = outdatedPackages
        let registry = PrometheusRegistry(MetricFamily.instruments)
        let core = try RenditionCore(
            configuration, zygote: zygote, clock: clock, registry: registry, holdsPuts: configuration.cluster != nil,
            logger: logger)
        do {
            let threads = WorkThreads(count: 1, limit: 64, name: "gifreel-admin")
            let readers = WorkThreads(count: 1, limit: 64, name: "gifreel-metrics")
            let prewarm = PrewarmQueue(
                limits: configuration.prewarm, ledger: core.cache.ledger, threads: threads, readers: readers,
                cluster: core.cluster?.prewarm,
                meter: LabelledCounter(
                    MetricFamily.prewarmed, label: "result", values: ["hit", "new", "failed"], factory: registry),
                logger: logger)
            let backgroundMeter = LabelledCounter(
                MetricFamily.backgroundRenditions, label: "result",
                values: BackgroundRenditions.Outcome.allCases.map(\.rawValue), factory: registry)
            let background = BackgroundRenditions(concurrency: configuration.prewarm.concurrency) {
                backgroundMeter.increment($0.rawValue)
            }
            let uploads = UploadAdmission(UploadAdmission.Limits(configuration))
            let statuses = StatusRegistry(limit: configuration.settings.maxStatuses, clock: clock)
            let webhookSender = try Fetcher(configuration: configuration.webhookSender)
            self.webhookSender = webhookSender
            let webhooks = Webhooks(
                configuration.webhooks, clock: clock,
                meter: LabelledCounter(MetricFamily.webhooks, label: "result", values: Webhooks.results, factory: registry),
                logger: logger
            ) { document, url, fields async throws(FetchError) in
                try await webhookSender.post(document, to: url, fields: fields)
            }
            let limits = ClientLimits(configuration.web, clock: clock, factory: registry)
            let operatorClient = try HTTPClient(name: "gifreel-notify", limits: HTTPClient.Limits(running: 64))
            self.operatorClient = operatorClient
            let hooks = PurgeHooks(factory: registry, logger: logger) { request in
                var request = request
                request.userAgent = "gifreel/\(Gifreel.version)"
                return await operatorClient.deliver(request)
            }
            hooks.setHooks(configuration.purgeHooks)
            traces = TraceExport(configuration, client: operatorClient, registry: registry, logger: logger)
            let usage = UsageBoard(mounts: configuration.web.mounts, clock: clock)
            web = WebHandler.Dependencies(
                cache: core.cache, state: core.state, purges: core.purges, prewarm: prewarm,
                background: background, registry: registry, meter: core.meter, limits: limits,
                hooks: hooks, uploads: uploads, statuses: statuses,
                sharedStatuses: core.cluster?.statuses, webhooks: webhooks,
                usage: usage, tracer: traces.tracer, clock: clock, threads: threads, metricsThreads: readers,
                sharing: { await SharingStatus(store: core.store, cluster: core.cluster) })
            zygote.onLoss { logger.error("lost the zygote process", metadata: ["cause": "\($0)"]) }
            let current = CurrentRevision(ServiceRevision(configuration, core, web, logger: logger))
            let requestMeter = RequestMeter(mounts: configuration.web.mounts.keys, factory: registry)
            let gate = accessLog.map { AccessLogGate($0, isOpen: configuration.logLevel <= .info) }
            server = HTTPServer(
                configuration: configuration.http, handler: current,
                observers: [requestMeter, limits, usage] + (gate.map { [$0] } ?? []),
                report: { logger.warning("\($0)") })
            let metrics = ServiceMetrics(outdatedPackages: outdatedPackages, core: core, server: server, web: web) {
                current.value.handler.isReady
            }
            registry.onCollect(metrics.samples)
            registry.onCollect(ProcessReadings().samples)
            registry.onCollect {
                droppedLogLines().map { log, lines in
                    .counter(
                        "gifreel_log_dropped_lines_total", lines, "Log lines that could not be written, by log.", [("log", log)]
                    )
                }
            }
            self.core = core
            self.current = current
            self.requestMeter = requestMeter
            self.accessLog = gate
        } catch {
            core.close()
            throw error
        }
    }

    /// The TCP port, once started.
    package var port: Int? { server.port }

    /// Starts to listen and to answer requests.
    package func start() throws {
        do throws(HTTPServerError) {
            try server.start()
        } catch {
            switch error {
            case .notASocket(let path): throw StartCheck.notASocket(path)
            case .unknownGroup: throw StartCheck.unusableGroup(error)
            default: throw error
            }
        }
        // Swift's pool and Dispatch start threads later, and try again forever: requests would hang, and so would a stop.
        guard SystemThread.canStart(Processors.available + 4) else {
            throw SettingsError("The server cannot start enough threads: \(SystemThread.shortage).")
        }
        let revision = current.value
        if let file = revision.configuration.settings.server.portFile, let port = server.port {
            try translating(try Files.write("\(port)\n", to: file)) { (error: FileError) in
                SettingsError("server.port_file: \(error)")
            }
        }
        let endpoints: [(IPAddress, Int)] = server.endpoints.compactMap { endpoint in
            guard case .tcp(let address, let port) = endpoint else { return nil }
            return (address, port)
        }
        core.fetcher.avoid(endpoints)
        webhookSender.avoid(endpoints)
        open(revision)
        if let cluster = core.cluster {
            cluster.start { [current] in current.value.handler.appliedLate($0) }
            Task { [core, current] in
                await core.state.catchUp.wait(until: revision.configuration.settings.cluster.catchUp)
                core.state.catchUp.open()
                current.value.handler.becomeReady()
            }
        }
        web.prewarm.start({ [current] in current.value.pipeline }, describe: PrewarmOutcome.init) { [webhooks = web.webhooks] in
            webhooks.report($0, to: $1, ended: $2)
        }
        web.background.start { [current] in current.value.pipeline }
        for package in outdatedPackages { revision.logger.warning("\(package)") }
        let addresses = server.endpoints.map(\.description).joined(separator: ", ")
        revision.logger.info("listening", metadata: ["at": "\(addresses)", "version": "\(Gifreel.description)"])
    }

    /// Calls `action` once every event loop has taken a turn. See ``HTTPServer/ping(_:)``.
    package func ping(_ action: @escaping @Sendable () -> Void) {
        server.ping(action)
    }

    /// Applies other settings to all requests from now on. Requests in progress keep the old ones.
    ///
    /// - Parameter configuration: Created from ``ReloadPlan/settings``, so settings that need a restart keep their old value.
    package func reload(_ configuration: ServiceConfiguration, logger: Logger) throws {
        try core.apply(configuration)
        web.uploads.setLimits(UploadAdmission.Limits(configuration))
        web.statuses.setLimit(configuration.settings.maxStatuses)
        web.limits.apply(configuration.web)
        web.hooks.setHooks(configuration.purgeHooks)
        webhookSender.reconfigure(configuration.webhookSender)
        web.webhooks.apply(configuration.webhooks)
        accessLog?.set(isOpen: configuration.logLevel <= .info)
        requestMeter.setMounts(configuration.web.mounts.keys)
        web.usage.setMounts(configuration.web.mounts)
        // A cached source may have been fetched from an address that is no longer allowed, which only the next fetch shows.
        let isNarrower = !Set(current.value.configuration.fetch.allowPrivate).isSubset(of: configuration.fetch.allowPrivate)
        if isNarrower { core.cache.expireAliases() }
        let next = ServiceRevision(configuration, core, web, logger: logger)
        open(next)
        let previous = current.replace(with: next)
        core.state.forgetRefusals()
        // The gate may have been opened in between, for the previous handler.
        if core.state.catchUp.isOpen { next.handler.becomeReady() }
        // Responses that were prepared with the old fields must not be sent.
        if previous.configuration.web.head != configuration.web.head { core.cache.forgetHot() }
    }

    /// The time for which a stop waits for the requests of purge hooks.
    private static let hookDrainTimeout: Duration = .seconds(3)
    /// The time for which a stop waits to leave the cluster and to close the cache, which is short unless the disk stalls.
    private static let closingTimeout: Duration = .seconds(10)

    private func open(_ revision: ServiceRevision) {
        for warning in revision.configuration.secretWarnings { revision.logger.warning("\(warning)") }
        if core.state.catchUp.isOpen { revision.handler.becomeReady() }
    }

    /// Stops in order: `/readyz` is 503 while connections are still accepted for the shutdown delay, so that a load balancer
    /// notices; then listening stops, requests in progress are answered, other conversions are cancelled, queued writes to the
    /// shared store are sent, and all parts are closed. A disk that stalls does not prevent the end of the process: the next
    /// start continues with what is on the disk.
    package func stop() async {
        let revision = current.value
        revision.handler.drain()
        core.state.catchUp.open()
        let delay = revision.configuration.settings.server.shutdownDelay
        if delay > .zero {
            revision.logger.info(
                "not ready, still answering", metadata: ["delay_ms": .stringConvertible(Int(delay / .milliseconds(1)))])
            try? await Task.sleep(for: delay)
        }
        revision.logger.info("draining")
        web.prewarm.stop()
        web.background.stop()
        // Event streams would last until the drain timeout.
        web.statuses.close()
        await server.drain()
        // No client waits for a conversion any more, and the longest ones would last for minutes.
        core.pool.cancelAll()
        web.webhooks.stop()
        await web.hooks.stop(within: Self.hookDrainTimeout)
        await traces.stop()
        let isClosed = AsyncSignal()
        Task {
            await close(revision)
            isClosed.signal()
        }
        let drainTimeout = core.store == nil ? .zero : revision.configuration.settings.store.s3.drainTimeout
        if await isClosed.wait(for: drainTimeout + Self.closingTimeout) {
            revision.logger.info("stopped")
        } else {
            revision.logger.warning("stopped without the cache, whose disk does not answer")
        }
    }

    /// Sends what is queued, leaves the cluster and closes all parts.
    private func close(_ revision: ServiceRevision) async {
        // Before this node leaves the cluster: until then, it applies purges, which may withdraw queued writes.
        let queuedWrites = await core.sendQueuedWrites(within: revision.configuration.settings.store.s3.drainTimeout)
        await core.cluster?.leave()
        if let pending = core.cluster?.metrics.purgesPending, pending > 0 {
            revision.logger.warning(
                "purges for the other nodes stay pending on disk", metadata: ["count": .stringConvertible(pending)])
        }
        if queuedWrites > 0 {
            revision.logger.warning(
                "writes to the shared store stay queued on disk", metadata: ["count": .stringConvertible(queuedWrites)])
        }
        // Closing blocks while threads finish their work.
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async { [web, operatorClient, webhookSender, core] in
                web.close()
                operatorClient.stop()
                webhookSender.shutdown()
                core.close()
                continuation.resume()
            }
        }
    }
}

extension SharedStatuses: SharedStatusBook {}

extension ServiceConfiguration {
    /// The client that sends webhooks: under the rules of fetches for addresses and ports, to the receivers that are allowed.
    fileprivate var webhookSender: FetchConfiguration {
        var sender = fetch
        sender.allow = webhooks.allow
        sender.concurrency = 16
        sender.perHost = 4
        sender.buckets = [:]
        sender.mounts = []
        return sender
    }
}

extension UploadAdmission.Limits {
    /// Four times as many uploads may arrive as conversions may wait, since uploads take longer to arrive than to convert. Half
    /// of the memory for sources is left to those that are fetched.
    fileprivate init(_ configuration: ServiceConfiguration) {
        self.init(
            uploads: (configuration.pool.workers + configuration.pool.queue) * 4,
            bytes: configuration.settings.transcode.queueBytes.bytes / 2)
    }
}

/// One revision of the settings and the policy values created from it. A reload replaces it as a whole, so no request is
/// answered by a mixture of old and new settings.
final class ServiceRevision: Sendable {
    let configuration: ServiceConfiguration
    let logger: Logger
    let pipeline: RenditionPipeline
    let handler: WebHandler

    init(_ configuration: ServiceConfiguration, _ core: RenditionCore, _ web: WebHandler.Dependencies, logger: Logger) {
        self.configuration = configuration
        self.logger = logger
        pipeline = core.pipeline(configuration, logger: logger) { web.usage.worked($0, host: $1) }
        handler = WebHandler(configuration.web, pipeline: pipeline, web, logger: logger)
    }
}

/// The current revision. Any thread.
final class CurrentRevision: HTTPHandler {
    private let current: Mutex<ServiceRevision>

    init(_ first: ServiceRevision) {
        current = Mutex(first)
    }

    var value: ServiceRevision { current.withLock { $0 } }

    func replace(with new: ServiceRevision) -> ServiceRevision {
        current.withLock { current in
            defer { current = new }
            return current
        }
    }

    func respond(to request: borrowing HTTPRequest) -> HTTPReply {
        // Only the handler is retained: every event loop changes the revision's reference count otherwise.
        current.withLock { $0.handler }.respond(to: request)
    }

    func response(to error: HTTPProtocolError) -> HTTPResponse {
        current.withLock { $0.handler }.response(to: error)
    }
}

/// Lets finished requests through to the access log while the log's level permits them.
final class AccessLogGate: HTTPObserver {
    private let log: any HTTPObserver
    private let isOpen: Atomic<Bool>

    init(_ log: any HTTPObserver, isOpen: Bool) {
        self.log = log
        self.isOpen = Atomic(isOpen)
    }

    func set(isOpen: Bool) {
        self.isOpen.store(isOpen, ordering: .relaxed)
    }

    func requestsFinished(_ batch: HTTPAccessBatch) {
        if isOpen.load(ordering: .relaxed) { log.requestsFinished(batch) }
    }
}

struct TraceExport: Sendable {
    let tracer: OTLPTracer
    private let exporter: SpanExporter?

    /// The time limit of one request to the collector.
    private static let requestTimeout = Duration.seconds(5)
    /// The statuses after which a request may be repeated. The protocol forbids that after all others (OTLP 1.0, retryable
    /// response codes).
    private static let temporary: Set = [429, 502, 503, 504]
    /// The time for which a stop waits for the remaining spans.
    private static let drainTimeout = Duration.seconds(3)

    /// Exports nothing without `tracing.endpoint`.
    ///
    /// - Parameter client: Sends the spans.
    init(_ configuration: ServiceConfiguration, client: HTTPClient, registry: PrometheusRegistry, logger: Logger) {
        let settings = configuration.settings.tracing
        guard let endpoint = settings.endpoint else {
            (tracer, exporter) = (OTLPTracer(nil, share: 0), nil)
            return
        }
        let node = configuration.settings.cluster.node ?? NodeName.current
        let exporter = SpanExporter(
            TraceResource(service: "gifreel", version: Gifreel.version, node: node),
            limits: SpanExporter.limits(items: settings.queue),
            meter: LabelledCounter(MetricFamily.traceSpans, label: "result", values: SpanExporter.results, factory: registry),
            logger: logger
        ) { document in
            var request = ClientRequest(
                "POST", endpoint, fields: settings.headers + ["Content-Type: application/json"],
                body: .bytes(Array(document.utf8)), timeout: Self.requestTimeout)
            request.userAgent = "gifreel/\(Gifreel.version)"
            return await client.deliver(request, temporary: Self.temporary)
        }
        self.exporter = exporter
        tracer = OTLPTracer(exporter, share: Double(settings.sample) / 100)
    }

    /// Sends the remaining spans, within a limit.
    func stop() async {
        await exporter?.stop(within: Self.drainTimeout)
    }
}
