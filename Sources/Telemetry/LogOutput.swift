internal import Glibc
package import Logging
internal import Synchronization
package import SystemIO

/// The service's log: one line per event on standard error.
///
/// As text, a line is `time level label: message name=value …`, and a value that is not a single word is quoted, with JSON
/// escapes. As JSON, it has the members `time`, `level` and `message`, and one member per metadata value.
///
/// Lines go through a ``LineWriter``, so that a logging call never blocks and never fails, whatever happens to standard error.
package final class LogOutput: Sendable {
    private let format: LogFormat
    /// Whether lines begin with their priority, because they go to the journal.
    private let hasPriorities: Bool
    private let writer: LineWriter?
    private let levelIndex: Atomic<Int>

    /// Creates a log on a duplicate of `descriptor`. If the descriptor is closed, every line is discarded.
    ///
    /// - Parameters:
    ///   - level: The least severe level that is written.
    ///   - descriptor: Standard error by default.
    ///   - journalStream: The value of the environment variable `JOURNAL_STREAM`; nil if it is not set.
    package init(
        format: LogFormat, level: Logger.Level, descriptor: Int32 = 2,
        journalStream: String? = getenv("JOURNAL_STREAM").map { String(cString: $0) }
    ) {
        self.format = format
        let hasPriorities = Self.isJournal(descriptor, variable: journalStream)
        self.hasPriorities = hasPriorities
        levelIndex = Atomic(Self.index(of: level))
        writer = try? LineWriter(duplicating: descriptor, name: "gifreel-log") { dropped in
            let fields = LogFields(
                level: .warning, message: "log lines are missing: they could not be written",
                metadata: ["count": .number(String(dropped))])
            return fields.line(format, hasPriority: hasPriorities)
        }
    }

    /// Whether a descriptor is the stream that the service manager connected to the journal. A program that a service starts
    /// inherits the variable, but may write to another stream.
    ///
    /// - Parameter variable: The value of `JOURNAL_STREAM`: the `device:inode` of the stream (systemd.exec(5)).
    private static func isJournal(_ descriptor: Int32, variable: String?) -> Bool {
        var status = stat()
        guard let variable, fstat(descriptor, &status) == 0 else { return false }
        return variable == "\(status.st_dev):\(status.st_ino)"
    }

    /// Returns a logger that writes to this log. It follows changes of the log's level, unless it has a level of its own.
    ///
    /// - Parameter metadataProvider: Adds values to each line, such as the request's ID.
    package func makeLogger(metadataProvider: Logger.MetadataProvider? = nil) -> Logger {
        let handler = LineLogHandler(output: self, metadataProvider: metadataProvider)
        return Logger(label: LogFields.label, factory: { _ in handler })
    }

    /// The least severe level that is written. Thread-safe.
    package var level: Logger.Level {
        get { Logger.Level.allCases[levelIndex.load(ordering: .relaxed)] }
        set { levelIndex.store(Self.index(of: newValue), ordering: .relaxed) }
    }

    private static func index(of level: Logger.Level) -> Int { Logger.Level.allCases.firstIndex(of: level) ?? 0 }

    fileprivate func append(_ fields: LogFields) {
        writer?.append(fields.line(format, hasPriority: hasPriorities))
    }

    /// The number of lines dropped since the start, because the reader of a pipe stalled or a write failed.
    package var droppedLines: Int { writer?.droppedLines ?? 0 }

    /// Waits until all lines are written, or `limit` has passed. Lines logged later are dropped. Blocks.
    package func close(within limit: Duration = .seconds(1)) {
        writer?.close(within: limit)
    }
}

/// A log handler that passes the values of events to a log.
private struct LineLogHandler: LogHandler {
    let output: LogOutput
    var metadata: Logger.Metadata = [:]
    var metadataProvider: Logger.MetadataProvider?
    /// The logger's own level; nil to use the log's level.
    var ownLevel: Logger.Level?

    var logLevel: Logger.Level {
        get { ownLevel ?? output.level }
        set { ownLevel = newValue }
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let all = metadata.merging(metadataProvider?.get() ?? [:]) { $1 }.merging(event.metadata ?? [:]) { $1 }
        output.append(
            LogFields(level: event.level, message: event.message.description, metadata: all.mapValues { LogValue($0) }))
    }
}
