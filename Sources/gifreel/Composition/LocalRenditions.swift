internal import Cache
internal import Fetch
internal import Logging
internal import Logs
internal import PrometheusMetrics
internal import Renditions
internal import Sandbox
internal import Settings
internal import Web

/// The core without a server, on a cache directory that no server uses.
final class LocalRenditions: Sendable {
    let store: RenditionStore
    private let cache: Cache
    private let fetcher: Fetcher
    private let pool: WorkerPool
    private let log: LogOutput

    /// - Throws: Errors whose description says what to change.
    init(_ configuration: ServiceConfiguration, zygote: Zygote) throws {
        cache = try Cache(configuration: configuration.cache)
        do {
            fetcher = try Fetcher(configuration: configuration.fetch)
        } catch {
            cache.close()
            throw error
        }
        log = LogOutput(format: configuration.logFormat == .json ? .json : .text)
        pool = WorkerPool(zygote: zygote, configuration: configuration.pool)
        store = RenditionStore(
            configuration: configuration,
            state: RenditionState(configuration.renditionLimits(pool: configuration.pool), clock: .system), cache: cache,
            clock: .system, fetcher: fetcher, pool: pool,
            logger: log.makeLogger(level: .error),
            meter: WorkMeter(factory: PrometheusRegistry([])) { Problem($0).code })
    }

    /// Ends the threads, unlocks the directory and writes the rest of the log. Blocks.
    func close() {
        fetcher.shutdown()
        pool.close()
        cache.close()
        log.close(within: .seconds(1))
    }
}
