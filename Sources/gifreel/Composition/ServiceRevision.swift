internal import HTTP
internal import Logging
internal import Renditions
internal import Synchronization
internal import Web

/// One revision of the settings and the policy values created from it. A reload replaces it as a whole, so no request is
/// answered by a mixture of old and new settings.
final class ServiceRevision: Sendable {
    let configuration: ServiceConfiguration
    let logger: Logger
    let pipeline: RenditionPipeline
    let handler: WebHandler

    init(_ configuration: ServiceConfiguration, _ core: RenditionCore, _ web: WebHandler.Dependencies, logger: Logger) {
        self.configuration = configuration
        self.logger = logger
        pipeline = core.pipeline(configuration, logger: logger)
        handler = WebHandler(configuration.web, pipeline: pipeline, web, logger: logger)
    }
}

/// The current revision. Any thread.
final class CurrentRevision: HTTPHandler {
    private let current: Mutex<ServiceRevision>

    init(_ first: ServiceRevision) {
        current = Mutex(first)
    }

    var value: ServiceRevision { current.withLock { $0 } }

    /// Makes a revision the current one and returns the previous one.
    func replace(with new: ServiceRevision) -> ServiceRevision {
        current.withLock { current in
            defer { current = new }
            return current
        }
    }

    func respond(to request: borrowing HTTPRequest) -> HTTPReply {
        // Only the handler is retained: every event loop changes the revision's reference count otherwise.
        current.withLock { $0.handler }.respond(to: request)
    }

    func response(to error: HTTPProtocolError) -> HTTPResponse {
        current.withLock { $0.handler }.response(to: error)
    }
}

/// Lets finished requests through to the access log while the log's level permits them.
final class AccessLogGate: HTTPObserver {
    private let log: any HTTPObserver
    private let isOpen: Atomic<Bool>

    init(_ log: any HTTPObserver, isOpen: Bool) {
        self.log = log
        self.isOpen = Atomic(isOpen)
    }

    func set(isOpen: Bool) {
        self.isOpen.store(isOpen, ordering: .relaxed)
    }

    func requestsFinished(_ batch: HTTPAccessBatch) {
        if isOpen.load(ordering: .relaxed) { log.requestsFinished(batch) }
    }
}
