package import Logging
internal import SystemIO

/// The service's log: one line per event on standard error, as text or as JSON.
///
/// Lines go through a ``LineWriter``, so that a logging call never blocks and never fails, whatever happens to standard error.
package final class LogOutput: Sendable {
    /// The form of a line.
    package enum Format: Sendable {
        /// `time level label: message name=value …`
        case text
        /// An object with the members `time`, `level`, `message` and one for each metadata value.
        case json
    }

    private let format: Format
    private let writer: LineWriter?

    /// A log on `descriptor`, of which it uses a duplicate. If the descriptor is closed, every line is discarded.
    ///
    /// - Parameter descriptor: Standard error by default.
    package init(format: Format, descriptor: Int32 = 2) {
        self.format = format
        writer = try? LineWriter(duplicating: descriptor, name: "gifreel-log") { dropped in
            let fields = LogFields(
                level: .warning, message: "log lines are missing: they could not be written",
                metadata: ["count": "\(dropped)"])
            return fields.line(format)
        }
    }

    /// A logger whose lines go to this log.
    ///
    /// - Parameter metadataProvider: Adds values to each line, such as the request's id.
    package func makeLogger(level: Logger.Level, metadataProvider: Logger.MetadataProvider? = nil) -> Logger {
        let handler = LineLogHandler(
            writer: writer, format: format, metadataProvider: metadataProvider, logLevel: level)
        return Logger(label: LogFields.label, factory: { _ in handler })
    }

    /// Lines that were dropped since the start, because the reader of a pipe stalled or a write failed.
    package var droppedLines: Int { writer?.droppedLines ?? 0 }

    /// Waits until all lines are written, or `limit` has passed. Lines logged later are dropped. Blocks.
    package func close(within limit: Duration) {
        writer?.close(within: limit)
    }
}

/// A log handler that formats events and passes the lines to a ``LineWriter``.
private struct LineLogHandler: LogHandler {
    let writer: LineWriter?
    let format: LogOutput.Format
    var metadata: Logger.Metadata = [:]
    var metadataProvider: Logger.MetadataProvider?
    var logLevel: Logger.Level

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let all = metadata.merging(metadataProvider?.get() ?? [:]) { $1 }.merging(event.metadata ?? [:]) { $1 }
        let fields = LogFields(
            level: event.level, message: event.message.description, metadata: all.mapValues(\.description))
        writer?.append(fields.line(format))
    }
}
