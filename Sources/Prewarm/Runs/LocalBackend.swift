internal import Cache
internal import Fetch
internal import Logging
internal import Logs
internal import PrometheusMetrics
internal import Sandbox
internal import Synchronization

/// Works in this process, straight on a cache directory that no server uses.
final class LocalBackend: PrewarmBackend {
    private let cache: Cache
    private let fetcher: Fetcher
    private let pool: WorkerPool
    private let prewarmer: Prewarmer
    private let concurrency: Int
    private let retries: Int
    private let log: LogOutput

    /// - Throws: Errors whose description is a sentence that says what to change.
    init(_ configuration: ServiceConfiguration, zygote: Zygote, concurrency: Int, retries: Int, log: LogOutput) throws {
        self.log = log
        self.concurrency = concurrency
        self.retries = retries
        cache = try Cache(configuration: configuration.cache)
        do {
            fetcher = try Fetcher(configuration: configuration.fetch)
        } catch {
            cache.close()
            throw error
        }
        pool = WorkerPool(zygote: zygote, configuration: configuration.pool)
        let store = RenditionStore(
            configuration: configuration, cache: cache, clock: .system, fetcher: fetcher, pool: pool,
            logger: log.makeLogger(level: .error), meter: WorkMeter(factory: PrometheusRegistry([])))
        prewarmer = Prewarmer { store }
    }

    func run(
        _ entries: [PrewarmEntry], _ finished: @escaping @Sendable (Int, PrewarmOutcome) -> Void
    ) async throws(PrewarmRunError) {
        let next = Countup()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<min(concurrency, entries.count) {
                group.addTask { [self] in
                    while !Task.isCancelled {
                        let number = next.take()
                        guard number < entries.count,
                            let outcome = await prewarmer.warm(entries[number], retries: retries)
                        else { return }
                        finished(number, outcome)
                    }
                }
            }
        }
    }

    /// Ends the threads, unlocks the directory and writes the rest of the log. Blocks.
    func close() {
        fetcher.shutdown()
        pool.close()
        cache.close()
        log.close(within: .seconds(1))
    }
}

/// Numbers from 0 on, each given out once.
private final class Countup: Sendable {
    private let next = Atomic(0)

    func take() -> Int { next.add(1, ordering: .relaxed).oldValue }
}
