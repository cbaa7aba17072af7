package import CoreMetrics
package import Fetch
internal import Glibc
internal import Media
internal import Sandbox
internal import Telemetry

/// Counts and times the work of misses: fetches, conversions, and the ends of workers. Any thread.
package final class WorkMeter: Sendable {
    private let fetches: LabelledCounter
    private let fetchDuration: Timer
    private let conversions: LabelledCounter
    private let conversionDuration: Timer
    private let conversionQueue: Timer
    private let sourceBytes: Counter
    private let outputBytes: Counter
    private let savedBytes: Counter
    private let kills: LabelledCounter
    private let uploadedBytes: Counter
    private let blockedSources: Counter
    private let flashingSources: Counter

    /// The value of the label `result` for an error.
    private let label: @Sendable (RenditionError) -> String

    package init(factory: any MetricsFactory, label: @escaping @Sendable (RenditionError) -> String) {
        self.label = label
        func counter(_ family: MetricFamily) -> Counter { Counter(label: family.name, factory: factory) }
        func timer(_ family: MetricFamily) -> Timer { Timer(label: family.name, factory: factory) }
        fetches = LabelledCounter(
            .fetches, label: "result", values: ["fetched", "not_modified"], factory: factory)
        fetchDuration = timer(.fetchDuration)
        conversions = LabelledCounter(.conversions, label: "result", values: ["made"], factory: factory)
        conversionDuration = timer(.conversionDuration)
        conversionQueue = timer(.conversionQueue)
        sourceBytes = counter(.sourceBytes)
        outputBytes = counter(.outputBytes)
        savedBytes = counter(.savedBytes)
        kills = LabelledCounter(
            .kills, label: "cause", values: SandboxError.killCauses, factory: factory)
        uploadedBytes = counter(.requestBytes)
        blockedSources = counter(.blockedSources)
        flashingSources = counter(.flashingSources)
    }

    /// Runs a fetch and records its outcome and duration.
    package func measureFetch(
        _ fetch: () async throws(FetchError) -> FetchOutcome
    ) async throws(FetchError) -> FetchOutcome {
        do throws(FetchError) {
            let outcome = try await fetch()
            switch outcome {
            case .fetched(let fetched):
                fetches.increment("fetched")
                fetchDuration.recordNanoseconds(Self.nanoseconds(fetched.duration))
            case .notModified(let unmodified):
                fetches.increment("not_modified")
                fetchDuration.recordNanoseconds(Self.nanoseconds(unmodified.duration))
            }
            return outcome
        } catch {
            fetches.increment(error == .cancelled ? "cancelled" : label(.fetchFailed(error)))
            throw error
        }
    }

    /// Records a conversion that succeeded. Posters and facts do not replace their source, so they save no bytes.
    func converted(_ report: WorkerReport, to output: OutputFormat, sourceBytes source: Int) {
        conversions.increment("made")
        conversionDuration.recordNanoseconds(Self.nanoseconds(report.ran))
        conversionQueue.recordNanoseconds(Self.nanoseconds(report.queued))
        guard Rendition.Format.output(output).isMoving else { return }
        sourceBytes.increment(by: source)
        outputBytes.increment(by: report.result.bytes)
        savedBytes.increment(by: max(0, source - report.result.bytes))
    }

    func conversionFailed(_ error: SandboxError, _ failure: RenditionError) {
        if let cause = error.killCause { kills.increment(cause) }
        conversions.increment(label(failure))
    }

    /// Records a source that the block list refuses, or that flashes. Other errors are not recorded here.
    package func objected(_ error: RenditionError) {
        switch error {
        case .blocked: blockedSources.increment()
        case .flashing: flashingSources.increment()
        default: break
        }
    }

    /// Records the bytes of an upload.
    package func uploaded(_ bytes: Int) {
        uploadedBytes.increment(by: bytes)
    }

    private static func nanoseconds(_ duration: Duration) -> Int64 {
        Int64(duration / .nanoseconds(1))
    }
}

extension SandboxError {
    /// Every value of ``killCause``.
    static let killCauses = [
        "time", "wall_time", "memory", "system_call", "crash", "killed", "exit", "misbehaved", "zygote",
    ]

    /// The label of a worker that was terminated or sent an invalid reply; nil for every other error.
    var killCause: String? {
        switch self {
        case .cpuLimitExceeded: "time"
        case .wallClockTimeout: "wall_time"
        case .killed: "killed"
        case .zygoteUnresponsive: "zygote"
        case .rejected(.outOfMemory): "memory"
        case .crashed(let exit):
            switch exit.signal {
            case SIGSYS: "system_call"
            case nil: "exit"
            default: "crash"
            }
        case .misbehaved, .invalidOutput: "misbehaved"
        case .rejected, .queueFull, .cancelled, .unavailable: nil
        }
    }
}
