/// How long the stages of a miss took, for `Server-Timing`.
package struct StageTimes: Sendable {
    var queue: Duration = .zero
    var fetch: Duration = .zero
    var transcode: Duration = .zero
    /// Processor time of the worker, however many threads it had.
    var cpu: Duration = .zero

    /// The field's value: `queue;dur=0.1, fetch;dur=12.0, transcode;dur=204.5, cpu;dur=198.2`, in milliseconds.
    package var serverTiming: String {
        stages.map { "\($0);dur=\(Self.milliseconds($1))" }.joined(separator: ", ")
    }

    /// `queue_ms`, `fetch_ms`, `transcode_ms` and `cpu_ms` with their values, for the log.
    package var logged: [(String, String)] {
        stages.map { ("\($0)_ms", Self.milliseconds($1)) }
    }

    private var stages: [(String, Duration)] {
        [("queue", queue), ("fetch", fetch), ("transcode", transcode), ("cpu", cpu)]
    }

    private static func milliseconds(_ duration: Duration) -> String {
        let tenths = Int(duration / .microseconds(100))
        return "\(tenths / 10).\(tenths % 10)"
    }
}
