internal import Cache
internal import Fetch
internal import Logging
internal import PrometheusMetrics
internal import Renditions
internal import Sandbox
internal import Web

/// The core and the engines under it, created and connected. The server and `gifreel prewarm` both use it.
///
/// It lives as long as the process; ``pipeline(_:logger:)`` gives the pipeline of one revision of the settings.
final class RenditionCore: Sendable {
    let cache: Cache
    let clock: CacheClock
    let fetcher: Fetcher
    let pool: WorkerPool
    let state: RenditionState
    let meter: WorkMeter

    /// Opens the cache and starts the threads of all engines.
    ///
    /// - Parameters:
    ///   - zygote: Forked before the process had a second thread.
    ///   - warn: Receives sentences about the cache, from any thread.
    /// - Throws: Errors whose description says what to change.
    init(
        _ configuration: ServiceConfiguration, zygote: Zygote, clock: CacheClock = .system, registry: PrometheusRegistry,
        warn: @escaping @Sendable (String) -> Void
    ) throws {
        self.clock = clock
        cache = try Cache(configuration: configuration.cache, clock: clock) { warn("\($0)") }
        do {
            fetcher = try Fetcher(configuration: configuration.fetch)
        } catch {
            cache.close()
            throw error
        }
        pool = WorkerPool(zygote: zygote, configuration: configuration.pool)
        state = RenditionState(configuration.renditionLimits(pool: configuration.pool), clock: clock)
        meter = WorkMeter(factory: registry) { Problem($0).code }
    }

    /// The pipeline with the policy of a configuration.
    func pipeline(_ configuration: ServiceConfiguration, logger: Logger) -> RenditionPipeline {
        let converter = Converter(
            cache: cache, pool: pool, limits: configuration.limits, allowance: configuration.allowance, meter: meter)
        return RenditionPipeline(
            RenditionPipeline.Policy(
                originRules: configuration.originRules, maxSourceBytes: configuration.fetch.maxBytes),
            state: state, cache: cache, clock: clock,
            fetch: { [fetcher, meter] url, validators async throws(FetchError) in
                try await meter.measureFetch { () async throws(FetchError) in
                    try await fetcher.fetch(url, validators: validators, fields: FieldLines.current)
                }
            },
            convert: { source, rendition, flight async throws(RenditionError) in
                try await converter.convert(source, to: rendition, flight)
            },
            logger: logger)
    }

    /// Applies another configuration to the engines. Work in progress ends under the old one.
    func apply(_ configuration: ServiceConfiguration) throws {
        try fetcher.reconfigure(configuration.fetch)
        state.apply(configuration.renditionLimits(pool: pool.configuration))
    }

    /// Ends all threads and unlocks the cache directory. Blocks until work in progress has ended.
    func close() {
        fetcher.shutdown()
        pool.close()
        cache.close()
    }
}

extension ServiceConfiguration {
    /// The limits of the core's state.
    ///
    /// - Parameter pool: The configuration of the worker pool in force, which a reload does not change.
    fileprivate func renditionLimits(pool: WorkerPoolConfiguration) -> RenditionState.Limits {
        let fetchLifetime = fetch.timeout * 4 + .seconds(30)
        return RenditionState.Limits(
            queueTimeout: queueTimeout, fetchLifetime: fetchLifetime,
            missLifetime: fetchLifetime + queueTimeout + .seconds(allowance.wall * 4), jobs: pool.workers + pool.queue,
            bytes: queueBytes)
    }
}
