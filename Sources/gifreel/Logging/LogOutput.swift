internal import Foundation
package import Logging

/// Where log lines go: standard error, as text or as JSON.
package enum LogOutput {
    /// A logger for the whole service.
    package static func makeLogger(level: Logger.Level, format: ServiceConfiguration.LogFormat) -> Logger {
        var logger = Logger(
            label: "gifreel",
            factory: { label in
                switch format {
                case .text: StreamLogHandler.standardError(label: label, metadataProvider: .request)
                case .json: JSONLogHandler(metadataProvider: .request)
                }
            })
        logger.logLevel = level
        return logger
    }
}

/// One JSON object a line on standard error.
private struct JSONLogHandler: LogHandler {
    var metadata: Logger.Metadata = [:]
    var metadataProvider: Logger.MetadataProvider?
    var logLevel = Logger.Level.info

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        var fields =
            metadata
            .merging(metadataProvider?.get() ?? [:]) { $1 }
            .merging(event.metadata ?? [:]) { $1 }
            .mapValues(\.description)
        fields["time"] = Date().formatted(.iso8601)
        fields["level"] = event.level.rawValue
        fields["message"] = event.message.description
        FileHandle.standardError.write(Data(JSONText.encode(fields)))
    }
}
