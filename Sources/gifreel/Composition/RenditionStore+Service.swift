internal import Cache
internal import Fetch
internal import Logging
internal import Renditions
internal import Sandbox
internal import Web

extension ServiceConfiguration {
    /// The bounds of the core's state.
    ///
    /// - Parameter pool: The worker pool in force: a reload does not resize it.
    func renditionLimits(pool: WorkerPoolConfiguration) -> RenditionState.Limits {
        let fetchLifetime = fetch.timeout * 4 + .seconds(30)
        return RenditionState.Limits(
            queueTimeout: queueTimeout, fetchLifetime: fetchLifetime,
            lifetime: fetchLifetime + queueTimeout + .seconds(allowance.wall * 4), jobs: pool.workers + pool.queue,
            bytes: queueBytes)
    }
}

extension RenditionStore {
    /// The store of one policy, in front of the fetcher and the workers.
    init(
        configuration: ServiceConfiguration, state: RenditionState, cache: Cache, clock: CacheClock, fetcher: Fetcher,
        pool: WorkerPool, logger: Logger, meter: WorkMeter
    ) {
        let fetches = SourceFetches(
            cache: cache, clock: clock, rules: configuration.originRules, state: state
        ) { url, validators in
            let result: Result<FetchOutcome, FetchError>
            do throws(FetchError) {
                result = .success(try await fetcher.fetch(url, validators: validators, fields: FieldLines.current))
            } catch {
                result = .failure(error)
            }
            meter.fetchEnded(result)
            return result
        }
        let converter = Converter(
            cache: cache, pool: pool, limits: configuration.limits, allowance: configuration.allowance, meter: meter)
        let maker = RenditionMaker(
            cache: cache, clock: clock, rules: configuration.originRules, state: state,
            largest: configuration.fetch.maxBytes, fetches: fetches,
            convert: { await converter.convert($0, to: $1, $2) }, logger: logger)
        self.init(cache: cache, maker: maker)
    }
}
