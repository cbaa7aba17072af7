internal import Renditions

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

    /// Tenths of milliseconds.
    private static func tenths(_ duration: Duration) -> Int { Int(duration / .microseconds(100)) }
}
