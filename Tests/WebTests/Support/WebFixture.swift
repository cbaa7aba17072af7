import Fetch
import Foundation
import HTTP
import HTTPClient
import Logging
import Media
import Prewarm
import Store
@testable import Sandbox
import Synchronization
import SystemIO
import Telemetry
import TestSupport
import Testing

@testable import Renditions
@testable import Web

/// The HTTP interface on a free port, with a real cache, fetcher and engine. Conversions run in this process.
///
/// Clients and conversions block threads of their own, never the cooperative pool, which the handler's tasks need.
final class WebFixture: Sendable {
    /// The values that tests change.
    struct Settings {
        var policy = WebFixture.policy
        /// Whether the server has started.
        var isReady = true
        /// The sources that the policy allows; nil for all.
        var allow: [SourcePattern]?
        var uploads = UploadAdmission.Limits(uploads: 64, bytes: 64 << 20)
        /// Conversions that run or wait.
        var jobs = 64
        /// The size limit of a source; nil for the default.
        var maxBytes: Int?
        /// Unfinished entries of prewarm jobs.
        var prewarmURLs = 10
        var hooks: [PurgeHook] = []
        /// Whether dither is removed by default.
        var undithers = true
        /// Statuses of requests that do not wait.
        var statuses = 64
        var timings = StatusRegistry.Timings()
        var webhooks = Webhooks.Policy()
        var webhookLimits = Webhooks.limits
        var clock = TimeSource.system
        /// Tells how old sources are.
        var cacheClock = TimeSource.system
        /// The bytes of the disk that stay free; the cache stores nothing if there are fewer.
        var minFreeBytes: Int64 = 0
        /// The sources that are refused.
        var blocks: BlockList?
        var flashes = FlashLimit.off
        /// The other nodes.
        var nodes: (any NodePurger)?
        var hookLimits = PurgeHooks.Limits()
        /// Has the renditions of other nodes.
        var tier: (any SharedTier)?
        /// The statuses of other nodes.
        var sharedStatuses: (any SharedStatusBook)?
        /// Gets documents with spans; nil for no tracing.
        var traces: Traces?
        /// The proxies whose fields are believed.
        var trustedProxies = ClientList()
    }

    /// A policy without limits, with a home page and for pages of any origin.
    private static var policy: WebPolicy {
        var policy = WebPolicy(
            version: "1.2.3", fetch: FetchConfiguration(), cache: CacheConfiguration(), maxAge: 86_400)
        policy.head.allowOrigin = "*"
        policy.hasHomePage = true
        return policy
    }

    /// A collector, and the share of requests that are traced.
    struct Traces {
        let share: Double
        let collect: SpanExporter.Send
    }

    let origin: LoopbackOrigin
    let handler: WebHandler
    private let state: RenditionState
    let log = LogLines()
    let background: BackgroundRenditions
    private let hooks: PurgeHooks
    /// Of renditions in the background.
    let outcomes = Recorded<BackgroundRenditions.Outcome>()
    let statuses: StatusRegistry
    let webhooks: Webhooks
    private let sender: Fetcher
    private let operatorClient: HTTPClient
    private let directory: URL
    let cache: Cache
    private let fetcher: Fetcher
    private let server: HTTPServer
    let admin = WorkThreads(count: 1, limit: 64, name: "test-admin")
    private let parts: WebHandler.Dependencies
    let usage: UsageBoard
    private let threads = WorkThreads(count: 4, limit: 64, name: "test-client")

    /// Runs `body` with a started server, and stops everything.
    static func run(
        _ paths: [String: LoopbackOrigin.Handler] = [:], _ configure: (inout Settings) throws -> Void = { _ in },
        _ body: (WebFixture) async throws -> Void
    ) async throws {
        var settings = Settings()
        try configure(&settings)
        let fixture = try WebFixture(paths, settings)
        do {
            try await body(fixture)
        } catch {
            await fixture.stop()
            throw error
        }
        await fixture.stop()
    }

    private init(_ paths: [String: LoopbackOrigin.Handler], _ settings: Settings) throws {
        directory = FileManager.default.temporaryDirectory.appendingPathComponent("gifreel-web-\(UUID().uuidString)")
        origin = try LoopbackOrigin(paths)
        let log = log
        let logger = Logger(label: "test") { _ in log.handler }

        var cacheConfiguration = CacheConfiguration()
        cacheConfiguration.directory = directory.path
        cacheConfiguration.minFreeBytes = settings.minFreeBytes
        cacheConfiguration.housekeepingInterval = .milliseconds(20)
        cache = try Cache(configuration: cacheConfiguration, owners: [PrewarmQueue.owned], clock: settings.cacheClock)
        var fetch = FetchConfiguration()
        fetch.allowPrivate = [try #require(AddressException("127.0.0.1"))]
        fetch.ports = PortSet([1...65_535])
        // On a busy machine, a test that holds an answer back may be kept from going on for tens of seconds.
        (fetch.timeout, fetch.stallTimeout) = (.seconds(300), .seconds(300))
        if let maxBytes = settings.maxBytes { fetch.maxBytes = maxBytes }
        fetcher = try Fetcher(configuration: fetch)

        state = RenditionState(
            RenditionState.Limits(
                queueTimeout: .seconds(300), fetchLifetime: .seconds(300), missLifetime: .seconds(300), jobs: settings.jobs,
                bytes: 1 << 30, fetches: 64),
            cache: cache, clock: .system)
        let usage = UsageBoard(mounts: settings.policy.mounts, clock: settings.clock)
        self.usage = usage
        let registry = PrometheusRegistry(MetricFamily.instruments)
        let meter = WorkMeter(factory: registry) { Problem($0).code }
        var core = RenditionPipeline.Policy(
            originRules: OriginRules(), maxSourceBytes: fetch.maxBytes,
            defaults: RenditionDefaults(undithers: settings.undithers, presets: settings.policy.presets))
        core.blocks = settings.blocks
        core.flashes = settings.flashes
        let pipeline = RenditionPipeline(
            core, state: state,
            cache: cache, clock: settings.cacheClock,
            fetch: { [fetcher] url, validators, arriving async throws(FetchError) in
                try await fetcher.fetch(url, validators: validators, fields: OTLPTracer.currentFields, arriving: arriving)
            },
            convert: { [cache] source, rendition, flight async throws(RenditionError) in
                defer { usage.worked(Self.cpu, host: source.origin?.url.host) }
                return try await Self.convert(source, to: rendition, flight, cache)
            },
            tier: settings.tier, onObjection: { meter.objected($0) }, logger: logger)
        let prewarm = PrewarmQueue(
            limits: PrewarmQueue.Limits(concurrency: 2, urls: settings.prewarmURLs),
            ledger: cache.ledger, threads: admin,
            meter: LabelledCounter(
                MetricFamily.prewarmed, label: "result", values: ["hit", "new", "failed"], factory: registry),
            logger: logger)
        background = BackgroundRenditions(concurrency: 1) { [outcomes] in outcomes.append($0) }
        background.start { pipeline }
        statuses = StatusRegistry(limit: settings.statuses, timings: settings.timings, clock: settings.clock)
        var sending = fetch
        sending.allow = settings.webhooks.allow
        let sender = try Fetcher(configuration: sending)
        self.sender = sender
        webhooks = Webhooks(
            settings.webhooks, limits: settings.webhookLimits,
            meter: LabelledCounter(MetricFamily.webhooks, label: "result", factory: registry), logger: logger
        ) { document, url, fields async throws(FetchError) in
            try await sender.post(document, to: url, fields: fields)
        }
        var policy = settings.policy
        if let patterns = settings.allow { fetch.allow = patterns }
        fetch.mounts = policy.mounts.values.map(\.rule)
        policy.sources = fetch.rules
        let limits = ClientLimits(policy, factory: registry)
        var purges = Purges(cache: cache, state: state, outbox: nil)
        purges.nodes = settings.nodes
        let operatorClient = try HTTPClient(name: "test-hooks", limits: .init(running: 8))
        self.operatorClient = operatorClient
        let hooks = PurgeHooks(settings.hookLimits, factory: registry, logger: logger) { request in
            await operatorClient.deliver(request)
        }
        hooks.setHooks(settings.hooks)
        self.hooks = hooks
        parts = WebHandler.Dependencies(
            cache: cache, state: state,
            purges: purges, prewarm: prewarm,
            background: background, registry: registry, meter: meter,
            limits: limits, hooks: hooks, uploads: UploadAdmission(settings.uploads), statuses: statuses,
            sharedStatuses: settings.sharedStatuses, webhooks: webhooks,
            usage: usage, tracer: Self.tracer(settings.traces, registry, logger), clock: .system,
            threads: admin, metricsThreads: WorkThreads(count: 1, limit: 64, name: "test-metrics"),
            sharing: { await SharingStatus(store: nil, cluster: nil) })
        handler = WebHandler(policy, pipeline: pipeline, parts, logger: logger)

        var http = HTTPServerConfiguration()
        http.port = 0
        http.threads = 1
        http.usesSocketActivation = false
        http.trustedProxies = settings.trustedProxies
        server = HTTPServer(
            configuration: http, handler: handler,
            observers: [RequestMeter(mounts: policy.mounts.keys, factory: registry), limits, usage])
        try server.start()
        if settings.isReady { handler.becomeReady() }
    }

    /// Clients that wait for objects of the shared tier.
    var objectWaiters: Int { state.objectFlights.waiterCount }

    /// Stores further renditions of a source, newer than all others.
    func addRenditions(_ count: Int, of url: String) async throws {
        let source = try SourceURL(url).canonical
        let object = try #require(try await cache.list(of: source).first).object.id
        for number in 1...count {
            let rendition = "jpg,width=\(number)"
            let alias = AliasRecord(
                key: AliasKey(sourceURL: source, rendition: rendition), sourceURL: source, rendition: rendition,
                times: OriginTimes(fetchedAt: TimeSource.system.steadySeconds))
            #expect(await cache.link(alias, to: object, epoch: cache.epoch) != nil)
        }
    }

    private func stop() async {
        background.stop()
        await hooks.stop(within: .seconds(1))
        await server.stop()
        webhooks.stop()
        sender.shutdown()
        operatorClient.stop()
        fetcher.shutdown()
        cache.close()
        parts.close()
        threads.close()
        origin.stop()
        try? FileManager.default.removeItem(at: directory)
    }

    private static func tracer(
        _ traces: Traces?, _ registry: PrometheusRegistry, _ logger: Logger
    ) -> OTLPTracer {
        guard let traces else { return OTLPTracer(nil, share: 0) }
        var limits = SpanExporter.limits(items: 2048)
        limits.interval = .milliseconds(1)
        let exporter = SpanExporter(
            TraceResource(service: "gifreel", version: "1.2.3", node: "node-1"), limits: limits,
            meter: LabelledCounter(MetricFamily.traceSpans, label: "result", factory: registry), logger: logger,
            send: traces.collect)
        return OTLPTracer(exporter, share: traces.share)
    }

    /// For the conversions of all tests: more at once would leave their servers no processor time for tens of seconds.
    private static let converters = WorkThreads(count: 2, limit: 10_000, name: "test-convert")

    /// The CPU time that every conversion reports.
    private static let cpu = Duration.microseconds(2960)

    /// Converts in this process what a worker would convert.
    private static func convert(
        _ source: SourceFile, to rendition: Rendition, _ flight: Flight, _ cache: Cache
    ) async throws(RenditionError) -> Converter.Conversion {
        guard let output = rendition.format.output, let file = try? await cache.stage(expecting: 0),
            let bytes = try? source.bytes.readAll()
        else { throw .overloaded(cause: "no file") }
        flight.markQueued()
        flight.turn.begin()
        let outcome = await converters.run { () -> Result<TranscodeResult, TranscodeError> in
            bytes.withUnsafeBytes { bytes in
                Result { () throws(TranscodeError) in
                    try Transcoder(output: output, options: rendition.options).convert(bytes, to: file.descriptor.number)
                }
            }
        }
        guard let outcome else { throw .overloaded(cause: "no thread") }
        var result: TranscodeResult
        do throws(TranscodeError) {
            result = try outcome.get()
        } catch {
            throw .conversionFailed(.rejected(error), allowance: WorkerAllowance())
        }
        let codecs: String?
        do throws(OutputFlaw) {
            let claim = OutputClaim(Transcoder(output: output, options: rendition.options), result)
            codecs = try OutputInspection.inspect(file.descriptor, as: claim, limit: 1 << 30)
        } catch {
            throw .conversionFailed(.invalidOutput(error), allowance: WorkerAllowance())
        }
        if output == .facts {
            result.bytes = try FactsFile.write(
                result, of: source.digest, bytes: source.count, with: rendition.options.facts, to: file.descriptor)
        }
        return Converter.Conversion(
            file: file,
            report: WorkerReport(
                result: result, codecs: codecs, queued: .milliseconds(1), ran: .milliseconds(2),
                cpuMicroseconds: Int(cpu / .microseconds(1)), peakBytes: 0))
    }

    // MARK: Requests

    /// The port of the server.
    var port: Int? { server.port }

    /// Sends one request on a connection of its own.
    func request(
        _ method: String = "GET", _ target: String, headers: [String] = [], body: [UInt8] = []
    ) async throws -> RawHTTPResponse {
        let port = try #require(server.port)
        let outcome = await threads.run {
            Result {
                var client = try RawHTTPClient(port: port, timeout: 120)
                return try client.request(method, target, headers: headers, body: body)
            }
        }
        return try #require(outcome).get()
    }

    /// The target of a rendition of the source at a path of the origin.
    func target(_ format: String, _ path: String) -> String { "/\(format)/\(origin.url(path))" }
}

extension RawHTTPResponse {
    /// The members of a JSON object in the body.
    func json() throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: Data(body)) as? [String: Any])
    }

    /// The code of a problem document.
    var code: String? { (try? json())?["code"] as? String }
    /// The sentence of a problem document.
    var detail: String? { (try? json())?["detail"] as? String }
}

/// Collects values in the order of arrival. Any thread.
final class Recorded<Value: Sendable>: Sendable {
    private let values = Mutex<[Value]>([])

    /// All values so far.
    var all: [Value] { values.withLock { $0 } }

    func append(_ value: Value) { values.withLock { $0.append(value) } }
}

/// Collects log lines. Any thread.
final class LogLines: Sendable {
    struct Line: Sendable {
        let level: Logger.Level
        let message: String
        let metadata: [String: String]
    }

    private let lines = Mutex<[Line]>([])

    /// All lines so far.
    var all: [Line] { lines.withLock { $0 } }

    /// The lines of a request.
    func lines(of request: String) -> [Line] { all.filter { $0.metadata["request_id"] == request } }

    fileprivate var handler: Handler { Handler(lines: self, metadataProvider: .request) }

    fileprivate struct Handler: LogHandler {
        let lines: LogLines
        var metadata: Logger.Metadata = [:]
        var metadataProvider: Logger.MetadataProvider?
        var logLevel = Logger.Level.info

        subscript(metadataKey key: String) -> Logger.MetadataValue? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            let all = metadata.merging(metadataProvider?.get() ?? [:]) { $1 }.merging(event.metadata ?? [:]) { $1 }
            let line = Line(level: event.level, message: "\(event.message)", metadata: all.mapValues { "\($0)" })
            lines.lines.withLock { $0.append(line) }
        }
    }
}

/// The time in seconds since 1970.
func currentSeconds() -> Int { Int(Date().timeIntervalSince1970) }
