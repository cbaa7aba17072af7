internal import Fetch
internal import Fleet
internal import Logging
internal import Prewarm
internal import Renditions
internal import Sandbox
internal import Settings
internal import Store
internal import SystemIO
internal import Telemetry
internal import Web

/// The core and the engines under it, created and connected. The server and `gifreel prewarm` both use it.
///
/// It lives as long as the process; ``pipeline(_:logger:)`` returns the pipeline of one revision of the settings.
final class RenditionCore: Sendable {
    let cache: Cache
    let clock: TimeSource
    let fetcher: Fetcher
    let pool: WorkerPool
    let state: RenditionState
    let meter: WorkMeter
    let purges: Purges
    let store: SharedStore?
    /// The part of this node in a cluster; nil if it works alone.
    let cluster: Cluster?
    private let tier: S3Tier?
    private let coordinator: ClusterCoordinator?

    /// Opens the cache and starts the threads of all engines.
    ///
    /// - Parameters:
    ///   - zygote: Forked before the process had a second thread.
    ///   - holdsPuts: Whether renditions that a former process queued wait for the purges that this node missed.
    ///   - logger: Receives lines about the cache, the shared store and the cluster, from any thread.
    /// - Throws: Errors whose description says what to change.
    init(
        _ configuration: ServiceConfiguration, zygote: Zygote, clock: TimeSource = .system, registry: PrometheusRegistry,
        holdsPuts: Bool, logger: Logger
    ) throws {
        self.clock = clock
        cache = try Cache(
            configuration: configuration.cache, owners: [PrewarmQueue.owned, PurgeTables.owned], clock: clock
        ) {
            logger.warning("\($0)")
        }
        do {
            fetcher = try Fetcher(configuration: configuration.fetch)
        } catch {
            cache.close()
            throw error
        }
        do {
            store = try configuration.store.map { [cache] settings in
                try SharedStore(
                    settings, ledger: cache.ledger, time: clock, holdsPuts: holdsPuts, purges: cache.purges
                ) { event in
                    logger.log(level: event.isProblem ? .warning : .notice, "shared store", metadata: ["event": "\(event)"])
                }
            }
        } catch {
            fetcher.shutdown()
            cache.close()
            throw error
        }
        pool = WorkerPool(zygote: zygote, configuration: configuration.pool)
        state = RenditionState(
            configuration.renditionLimits(pool: configuration.pool), failureScope: configuration.failureScope, cache: cache,
            clock: clock, catchUp: CatchUpGate(isOpen: configuration.cluster == nil))
        // Other nodes may have purged since this one ended. After a short absence, no purge can be complete without this node,
        // so stored renditions may answer where neither the cluster nor the origin does.
        if let settings = configuration.cluster {
            cache.holdAliases(Cluster.tookPartRecently(cache, settings) ? .possible : .certain)
        }
        meter = WorkMeter(factory: registry) { Problem($0).code }
        tier = store.map { [cache] in S3Tier($0, cache: cache) }
        var purges = Purges(cache: cache, state: state, outbox: store?.outbox)
        cluster = configuration.cluster.map { [cache, state, store, purges] settings in
            var handlers = ClusterHandlers { await purges.revalidateAll($0) }
            handlers.onEvent = { event in
                logger.log(level: event.isProblem ? .warning : .notice, "cluster", metadata: ["event": "\(event)"])
            }
            handlers.onFailure = { state.remember($1, ofSourceAt: $0, if: $2) }
            handlers.onFollow = {
                // An object that was purged while this node was away is not uploaded again.
                store?.outbox?.releasePuts()
                state.catchUp.open()
            }
            return Cluster(settings, cache: cache, time: clock, handlers: handlers)
        }
        coordinator = cluster.map { ClusterCoordinator($0, freshFor: configuration.cache.freshFor, clock: clock) }
        purges.nodes = cluster?.purger
        self.purges = purges
    }

    /// The pipeline with the policy of a configuration.
    func pipeline(
        _ configuration: ServiceConfiguration, logger: Logger, onWork: @escaping Converter.OnWork = { _, _ in }
    ) -> RenditionPipeline {
        let converter = Converter(
            cache: cache, pool: pool, limits: configuration.limits, allowance: configuration.allowance, meter: meter,
            onWork: onWork)
        var policy = RenditionPipeline.Policy(
            originRules: configuration.originRules, maxSourceBytes: configuration.fetch.maxBytes,
            failureScope: configuration.failureScope, defaults: configuration.defaults,
            objectCatchUpLimit: configuration.settings.cluster.catchUp)
        policy.sources = configuration.fetch.rules
        policy.blocks = configuration.blocks
        policy.flashes = configuration.settings.flashLimit
        return RenditionPipeline(
            policy, state: state, cache: cache, clock: clock,
            fetch: { [fetcher, meter] url, validators, arriving async throws(FetchError) in
                try await meter.measureFetch { () async throws(FetchError) in
                    try await fetcher.fetch(url, validators: validators, fields: OTLPTracer.currentFields, arriving: arriving)
                }
            },
            convert: { source, rendition, flight async throws(RenditionError) in
                try await converter.convert(source, to: rendition, flight)
            },
            tier: tier, coordinator: coordinator, onObjection: { [meter] in meter.objected($0) }, logger: logger)
    }

    /// Applies another configuration to the engines. Work in progress ends under the old one.
    func apply(_ configuration: ServiceConfiguration) throws {
        fetcher.reconfigure(configuration.fetch)
        cache.setLimits(maxBytes: configuration.cache.maxBytes, minFreeBytes: configuration.cache.minFreeBytes)
        state.apply(configuration.renditionLimits(pool: pool.configuration), failureScope: configuration.failureScope)
    }

    /// Waits until the writes to the shared store are sent, so that the node and its disk can be removed. Does not wait while
    /// the circuit breaker is open. Writes that are left stay in the queue on disk, and no more are sent.
    ///
    /// - Returns: The number of writes that are left.
    func sendQueuedWrites(within limit: Duration) async -> Int {
        guard let store, let outbox = store.outbox else { return 0 }
        defer { outbox.endSending() }
        if store.statistics.breaker == .closed, await outbox.drain(within: limit) { return 0 }
        return store.statistics.queuedWrites
    }

    /// Ends all threads and unlocks the cache directory. Blocks until work in progress has ended.
    func close() {
        fetcher.shutdown()
        pool.close()
        cluster?.close()
        store?.close()
        cache.close()
    }
}

extension ServiceConfiguration {
    /// Identifies the conditions, apart from its bytes, that decide whether a source fails: the version and the limits.
    fileprivate var failureScope: String {
        "\(Gifreel.version) \(fetch.maxBytes) \(fetch.maxRedirects) \(limits) \(allowance)"
    }

    /// The limits of the core's state.
    ///
    /// - Parameter pool: The configuration of the current worker pool, which a reload does not change.
    fileprivate func renditionLimits(pool: WorkerPoolConfiguration) -> RenditionState.Limits {
        let fetchLifetime = fetch.timeout * 4 + .seconds(30)
        return RenditionState.Limits(
            queueTimeout: settings.transcode.queueTimeout, waitTimeout: settings.transcode.waitTimeout,
            fetchLifetime: fetchLifetime,
            missLifetime: fetchLifetime + settings.transcode.queueTimeout + .seconds(allowance.wall * 4),
            jobs: pool.workers + pool.queue, bytes: settings.transcode.queueBytes.bytes, fetches: fetch.concurrency,
            fetchesPerHost: fetch.perHost)
    }
}
