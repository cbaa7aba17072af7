/// The format of log lines.
package enum LogFormat: String, Sendable, CaseIterable {
    case text
    /// A JSON object per line.
    case json
}
