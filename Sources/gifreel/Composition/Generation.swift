internal import Cache
internal import Fetch
internal import HTTP
internal import Logging
internal import Prewarm
internal import PrometheusMetrics
internal import Renditions
internal import Sandbox
internal import Synchronization
internal import SystemIO
internal import Web

/// What one reading of the settings makes: all that answers by them. It is replaced as a whole when they are read again,
/// so that no request ever sees half of the old and half of the new ones.
final class Generation: Sendable {
    /// What stays when the settings are read again.
    struct Rooms: Sendable {
        let cache: Cache
        let fetcher: Fetcher
        let clock: CacheClock
        let pool: WorkerPool
        let state: RenditionState
        let limiter: RateLimiter
        let prewarm: PrewarmQueue
        let registry: PrometheusRegistry
        let work: WorkMeter
        let uploads: UploadAdmission
        /// For the blocking parts of what operators ask for.
        let threads: WorkThreads
    }

    let configuration: ServiceConfiguration
    let logger: Logger
    let store: RenditionStore
    let door: FrontDoor

    init(_ configuration: ServiceConfiguration, _ rooms: Rooms, logger: Logger) {
        self.configuration = configuration
        self.logger = logger
        store = RenditionStore(
            configuration: configuration, state: rooms.state, cache: rooms.cache, clock: rooms.clock, fetcher: rooms.fetcher,
            pool: rooms.pool,
            logger: logger, meter: rooms.work)
        rooms.uploads.setLimits(UploadAdmission.Limits(configuration))
        door = FrontDoor(
            configuration: configuration.web, store: store, registry: rooms.registry, prewarm: rooms.prewarm,
            threads: rooms.threads, limiter: rooms.limiter, clock: rooms.clock, work: rooms.work, uploads: rooms.uploads,
            logger: logger)
    }

    /// Begins to answer on a server that listens.
    func open() {
        if configuration.signingKeys.hasShortKey {
            logger.warning("a signing key has fewer than 32 bytes and may be guessed")
        }
        door.become(.ready)
    }
}

/// The generation that answers now.
final class CurrentGeneration: HTTPHandler {
    private let current: Mutex<Generation>

    init(_ first: Generation) {
        current = Mutex(first)
    }

    var value: Generation { current.withLock { $0 } }

    /// Returns the one that answered so far.
    func replace(with new: Generation) -> Generation {
        current.withLock { current in
            defer { current = new }
            return current
        }
    }

    func respond(to request: borrowing HTTPRequest) -> HTTPReply {
        // The door alone is kept during the call: every loop counts the references to it.
        current.withLock { $0.door }.respond(to: request)
    }
}

extension UploadAdmission.Limits {
    /// Four times as many uploads may arrive as conversions may wait, since uploads take longer to arrive than to convert. Half
    /// of the memory for GIFs is left to those that are fetched.
    init(_ configuration: ServiceConfiguration) {
        self.init(
            uploads: (configuration.pool.workers + configuration.pool.queue) * 4, bytes: configuration.queueBytes / 2)
    }
}
