internal import Logging
internal import Prewarm
internal import Renditions
internal import Sandbox
internal import Settings
internal import Store
internal import Telemetry

/// A pipeline in this process, on a cache directory that no server uses.
struct LocalPipeline {
    let pipeline: RenditionPipeline
    private let core: RenditionCore
    private let log: LogOutput

    /// Opens the cache directory of the settings.
    ///
    /// - Parameters:
    ///   - concurrency: The number of renditions that are requested at the same time.
    ///   - warn: Called if the kernel confines the workers incompletely, and the settings permit that.
    init(
        _ settings: ServiceConfiguration, zygote: Zygote, concurrency: Int, warn: (String) -> Void
    ) throws {
        var configuration = settings
        if let warning = try ConfinementCheck.check(zygote.confinement(), isRequired: configuration.settings.sandbox.require) {
            warn(warning)
        }
        configuration.pool.queue = max(configuration.pool.queue, concurrency)
        // A run on a directory of its own takes no part in a cluster, and misses its purges.
        let holdsPuts = configuration.cluster != nil
        configuration.cluster = nil
        log = LogOutput(format: configuration.settings.log.format, level: .error)
        let logger = log.makeLogger()
        do {
            core = try RenditionCore(
                configuration, zygote: zygote, registry: PrometheusRegistry([]), holdsPuts: holdsPuts, logger: logger)
        } catch let error as CacheError {
            guard case .directoryInUse = error else { throw error }
            throw PrewarmRunError("A server uses this cache directory; give its URL with --server. (\(error))")
        }
        pipeline = core.pipeline(configuration, logger: logger)
    }

    /// The time for which ``close()`` waits for queued writes to the shared store.
    private static let storeDrainTimeout = Duration.seconds(60)

    /// The time limit for the log to write its last lines.
    private static let logFlushLimit = Duration.seconds(1)

    /// Cancels conversions, sends queued writes to the shared store, and closes the cache. Blocks the calling thread.
    ///
    /// - Returns: The number of writes that stay queued in the cache directory.
    func close() -> Int {
        // Either nothing is left to convert, or a conversion in progress would delay the end for minutes.
        core.pool.cancelAll()
        let queuedWrites = Blocking.wait { [core] in await core.sendQueuedWrites(within: Self.storeDrainTimeout) }
        core.close()
        log.close(within: Self.logFlushLimit)
        return queuedWrites
    }
}
