package import CoreMetrics
package import Fetch
internal import Media
internal import PrometheusMetrics
internal import Sandbox

/// Measures what misses take: fetches, conversions, and how workers end.
package final class WorkMeter: Sendable {
    private let fetches: LabelledCounter
    private let fetchDuration: Timer
    private let conversions: LabelledCounter
    private let conversionDuration: Timer
    private let conversionQueue: Timer
    private let conversionCPU: FloatingPointCounter
    private let sourceBytes: Counter
    private let outputBytes: Counter
    private let savedBytes: Counter
    private let kills: LabelledCounter
    private let uploadedBytes: Counter

    /// The value of the label `result` for an error.
    private let label: @Sendable (RenditionError) -> String

    /// - Parameter label: Names an error in the label `result`.
    package init(factory: any MetricsFactory, label: @escaping @Sendable (RenditionError) -> String) {
        self.label = label
        func counter(_ family: MetricFamily) -> Counter { Counter(label: family.name, factory: factory) }
        func timer(_ family: MetricFamily) -> Timer { Timer(label: family.name, factory: factory) }
        fetches = LabelledCounter(
            Families.fetches, label: "result", values: ["fetched", "not_modified"], factory: factory)
        fetchDuration = timer(Families.fetchDuration)
        conversions = LabelledCounter(Families.conversions, label: "result", values: ["made"], factory: factory)
        conversionDuration = timer(Families.conversionDuration)
        conversionQueue = timer(Families.conversionQueue)
        conversionCPU = FloatingPointCounter(label: Families.conversionCPU.name, factory: factory)
        sourceBytes = counter(Families.sourceBytes)
        outputBytes = counter(Families.outputBytes)
        savedBytes = counter(Families.savedBytes)
        kills = LabelledCounter(
            Families.kills, label: "cause", values: SandboxError.killCauses, factory: factory)
        uploadedBytes = counter(Families.requestBytes)
    }

    /// A fetch ended.
    package func fetchEnded(_ result: Result<FetchOutcome, FetchError>) {
        switch result {
        case .success(.fetched(let fetched)):
            fetches.increment("fetched")
            fetchDuration.recordNanoseconds(Self.nanoseconds(fetched.duration))
        case .success(.notModified(let unmodified)):
            fetches.increment("not_modified")
            fetchDuration.recordNanoseconds(Self.nanoseconds(unmodified.duration))
        case .failure(.cancelled): fetches.increment("cancelled")
        case .failure(let error): fetches.increment(label(.fetchFailed(error)))
        }
    }

    /// A conversion brought something.
    func converted(_ report: WorkerReport, sourceBytes source: Int) {
        conversions.increment("made")
        conversionDuration.recordNanoseconds(Self.nanoseconds(report.ran))
        conversionQueue.recordNanoseconds(Self.nanoseconds(report.queued))
        conversionCPU.increment(by: Double(report.cpuMicroseconds) / 1e6)
        sourceBytes.increment(by: source)
        outputBytes.increment(by: report.result.bytes)
        savedBytes.increment(by: max(0, source - report.result.bytes))
    }

    /// A conversion brought nothing.
    func conversionFailed(_ error: SandboxError, _ failure: RenditionError) {
        if let cause = error.killCause { kills.increment(cause) }
        conversions.increment(label(failure))
    }

    /// A GIF came in a request.
    package func uploaded(_ bytes: Int) {
        uploadedBytes.increment(by: bytes)
    }

    private static func nanoseconds(_ duration: Duration) -> Int64 {
        Int64(duration / .nanoseconds(1))
    }
}
