internal import Logging
internal import Renditions
internal import Store

/// Log lines about requests that the pipeline has processed.
///
/// A line is written in the task of its request, so the metadata provider adds the request's id and trace.
struct ResponseLog: Sendable {
    let logger: Logger

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
        if let facts = RenditionFacts(stored: result.rendition.facts) {
            metadata["source_bytes"] = .stringConvertible(facts.sourceBytes)
        }
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

extension StageTimes {
    /// The value of `Server-Timing`, in milliseconds: `queue;dur=0.1, fetch;dur=12.0, transcode;dur=204.5, cpu;dur=198.2`.
    var serverTiming: String {
        stages.map { "\($0);dur=\(Self.milliseconds($1))" }.joined(separator: ", ")
    }

    /// `queue_ms`, `fetch_ms`, `transcode_ms` and `cpu_ms` with their values, for log lines.
    var logged: [(String, Double)] {
        stages.map { ("\($0)_ms", Double(Self.tenths($1)) / 10) }
    }

    private var stages: [(String, Duration)] {
        [("queue", queue), ("fetch", fetch), ("transcode", transcode), ("cpu", cpu)]
    }

    private static func milliseconds(_ duration: Duration) -> String {
        let tenths = tenths(duration)
        return "\(tenths / 10).\(tenths % 10)"
    }

    /// Tenths of milliseconds, rounded as in the lines about produced renditions.
    private static func tenths(_ duration: Duration) -> Int { Int((duration / .microseconds(100)).rounded()) }
}
