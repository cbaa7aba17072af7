internal import Cache
internal import Fetch
internal import Logging
internal import Renditions
internal import Sandbox
internal import Web

extension RenditionStore {
    /// The store as the service has it: with the fetcher and the workers behind it.
    init(
        configuration: ServiceConfiguration, cache: Cache, clock: CacheClock, fetcher: Fetcher, pool: WorkerPool,
        logger: Logger,
        meter: WorkMeter
    ) {
        let remembered = RememberedProblems(clock: clock)
        // All that a making waits for has a bound of its own; this one is for what nobody has thought of.
        let fetchLifetime = configuration.fetch.timeout * 4 + .seconds(30)
        let lifetime = fetchLifetime + configuration.queueTimeout + .seconds(configuration.allowance.wall * 4)
        let fetches = SourceFetches(
            cache: cache, clock: clock, rules: configuration.originRules, remembered: remembered, lifetime: fetchLifetime
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
        let places = configuration.pool.workers + configuration.pool.queue
        let maker = RenditionMaker(
            cache: cache, clock: clock, rules: configuration.originRules, remembered: remembered,
            admission: MissAdmission(jobs: places, bytes: configuration.queueBytes), largest: configuration.fetch.maxBytes,
            fetches: fetches, convert: { await converter.convert($0, to: $1, $2) }, logger: logger)
        self.init(
            cache: cache, maker: maker, patience: configuration.queueTimeout, lifetime: lifetime)
    }
}
