internal import Cache
internal import Fetch
internal import Logging
internal import Media
internal import Sandbox

/// The log's lines on renditions that were made.
struct MakingLog: Sendable {
    private let logger: Logger

    init(_ logger: Logger) {
        self.logger = logger
    }

    func made(_ rendition: Rendition, _ source: Source, _ report: WorkerReport, _ outcome: PublishOutcome) {
        var metadata: Logger.Metadata = [
            "rendition": "\(rendition.canonicalText)", "gif_bytes": "\(source.count)", "bytes": "\(report.result.bytes)",
            "frames": "\(report.result.frames)", "ms": "\(report.ran / .milliseconds(1))",
            "cpu_ms": "\(report.cpuMicroseconds / 1000)",
        ]
        if let origin = source.origin { metadata["source_host"] = "\(origin.url.host)" }
        switch outcome {
        case .unstored(_, .unwanted):
            logger.info("made a rendition that its origin does not want stored", metadata: metadata)
        case .unstored(_, let reason):
            metadata["reason"] = "\(reason)"
            logger.warning("made a rendition that is not stored", metadata: metadata)
        case .stored, .existing:
            logger.info("made a rendition", metadata: metadata)
        }
    }
}
