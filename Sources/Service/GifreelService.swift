package import Cache
internal import Fetch
package import HTTP
internal import Foundation
package import Logging
internal import Media
package import Sandbox

/// The composition root: makes every room, connects them, starts and stops them.
package final class GifreelService: Sendable {
    private let configuration: ServiceConfiguration
    private let cache: Cache
    private let fetcher: Fetcher
    private let pool: WorkerPool
    private let door: FrontDoor
    private let server: HTTPServer
    private let logger: Logger

    /// Opens the cache and prepares everything; nothing listens yet.
    ///
    /// - Parameters:
    ///   - zygote: Forked before the process had a second thread.
    ///   - clock: What freshness goes by.
    ///   - observer: Hears of finished requests.
    /// - Throws: Errors whose description is a sentence that says what to change.
    package init(
        configuration: ServiceConfiguration, zygote: Zygote, clock: CacheClock = .system, logger: Logger,
        observer: (any HTTPObserver)? = nil
    ) throws {
        try Transcoder.checkLibraries()
        self.configuration = configuration
        self.logger = logger
        cache = try Cache(configuration: configuration.cache, clock: clock)
        do {
            fetcher = try Fetcher(configuration: configuration.fetch)
            pool = WorkerPool(zygote: zygote, configuration: configuration.pool)
            let store = RenditionStore(
                configuration: configuration, cache: cache, clock: clock, fetcher: fetcher, pool: pool, logger: logger)
            door = FrontDoor(
                configuration: configuration, store: store,
                admin: AdminDesk(store: store, token: configuration.adminToken),
                access: AccessControl(configuration, clock: clock), logger: logger)
            var http = configuration.http
            http.errorResponse = { error in
                ProblemDocument.response(Problem(error.status, error.code, error.sentence))
            }
            server = try HTTPServer(configuration: http, handler: door, observer: observer)
        } catch {
            cache.close()
            throw error
        }
    }

    /// The TCP port, once started.
    package var port: Int? { server.port }

    /// Renditions that wait for a worker or have one.
    package var load: (running: Int, waiting: Int) { pool.load }

    /// Listens. From here on requests are answered.
    package func start() throws {
        try server.start()
        if let file = configuration.portFile, let port = server.port {
            try Data("\(port)\n".utf8).write(to: URL(fileURLWithPath: file), options: .atomic)
        }
        fetcher.avoid(
            server.endpoints.compactMap { endpoint in
                guard case .tcp(let address, let port) = endpoint else { return nil }
                return (address, port)
            })
        if configuration.signingKeys.hasShortKey {
            logger.warning("a signing key has fewer than 32 bytes and may be guessed")
        }
        door.become(.ready)
        let endpoints = server.endpoints.map(\.description).joined(separator: ", ")
        logger.info("listening", metadata: ["at": "\(endpoints)", "version": "\(Gifreel.version)"])
    }

    /// Ends in order: `/readyz` turns 503, listening stops, what is in flight is answered, then every room closes.
    package func stop() async {
        door.become(.draining)
        logger.info("draining")
        await server.drain()
        fetcher.shutdown()
        // Both block for as long as their threads' work takes; by now hardly ever at all.
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async { [self] in
                pool.close()
                cache.close()
                continuation.resume()
            }
        }
        logger.info("stopped")
    }
}
