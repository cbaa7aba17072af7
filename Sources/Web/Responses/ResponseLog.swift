internal import Logging
internal import Renditions

/// Log lines about requests that the pipeline has processed.
///
/// A line is written in the task of its request, so the metadata provider adds the request's id and trace.
struct ResponseLog: Sendable {
    private let logger: Logger

    init(_ logger: Logger) {
        self.logger = logger
    }

    /// Logs a result of the pipeline and the times of its stages.
    ///
    /// - Parameters:
    ///   - rendition: The requested rendition, which may be composed from the result.
    ///   - host: The host of the source; nil for an upload.
    func answered(_ rendition: Rendition, host: String?, _ result: RenditionResult) {
        guard logger.logLevel <= .info else { return }
        var metadata: Logger.Metadata = [
            "rendition": "\(rendition.canonicalText)", "source_host": "\(host ?? "upload")",
            "cache_status": "\(CacheStatusField.value(result.provenance))",
        ]
        for (name, value) in result.times.logged { metadata[name] = .stringConvertible(value) }
        logger.info("answered", metadata: metadata)
    }

    /// Logs that a request got the source because its rendition was not stored.
    func followed(_ rendition: Rendition, host: String) {
        logger.info(
            "answered",
            metadata: [
                "rendition": "\(rendition.canonicalText)", "source_host": "\(host)",
                "cache_status": "\(CacheStatusField.followed)",
            ])
    }

    /// Logs a stored object that was not in memory.
    func answered(object path: String) {
        logger.info("answered", metadata: ["rendition": "\(path)", "cache_status": "gifreel; hit"])
    }

    /// Logs a problem with its cause, unless it was remembered or the client has left. A fault of the server is a warning.
    ///
    /// - Parameter host: The host of the source; nil for an upload.
    func failed(_ problem: Problem, host: String?) {
        guard problem.isLogged else { return }
        logger.log(
            level: problem.isServerFault ? .warning : .notice, "request failed",
            metadata: [
                "code": "\(problem.code)", "source_host": "\(host ?? "upload")",
                "cause": "\(problem.cause ?? problem.detail)",
            ])
    }
}
