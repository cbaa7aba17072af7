package import CoreMetrics
internal import Synchronization

/// A swift-metrics backend for Prometheus.
///
/// Labels of swift-metrics are family names here, and dimensions are labels. Families are declared beforehand, so that each has
/// a help text and histograms have their buckets. An undeclared family still counts, with a help text that says so. Two
/// instruments with the same name and labels share one series. Thread-safe.
package final class PrometheusRegistry: MetricsFactory {
    private struct Series {
        var family: MetricFamily
        var instruments: [MetricLabels: any MetricInstrument] = [:]
    }

    private let series: Mutex<[String: Series]>
    /// Closures that read the values counted by other components.
    private let collect: Mutex<[@Sendable () -> [MetricSample]]> = Mutex([])

    /// - Parameter families: The declared families.
    package init(_ families: [MetricFamily]) {
        series = Mutex(Dictionary(families.map { ($0.name, Series(family: $0)) }, uniquingKeysWith: { first, _ in first }))
    }

    /// Registers a closure that ``text(_:)`` calls on its caller's thread.
    package func onCollect(_ read: @escaping @Sendable () -> [MetricSample]) {
        collect.withLock { $0.append(read) }
    }

    /// Returns all samples in the requested format. Families and series are sorted by name.
    package func text(_ format: ExpositionFormat) -> String {
        let read = collect.withLock { $0 }
        var all = series.withLock { series in
            series.mapValues { ExpositionFamily(family: $0.family, series: $0.instruments.mapValues(\.value)) }
        }
        for sample in read.flatMap({ $0() }) {
            all[sample.family.name, default: ExpositionFamily(family: sample.family, series: [:])]
                .series[sample.labels] = .number(sample.value)
        }
        var writer = ExpositionWriter(format)
        for family in all.values.sorted(by: { $0.family.name < $1.family.name }) where !family.series.isEmpty {
            writer.write(family)
        }
        return writer.finish()
    }

    // MARK: MetricsFactory

    package func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        instrument(label, dimensions, .counter) { _ in CounterInstrument() }
    }

    package func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        instrument(label, dimensions, .histogram([])) { HistogramInstrument(bounds: $0) }
    }

    /// Discards the values: gauges are read when metrics are collected.
    package func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler { NOOPMetricsHandler.instance }

    /// Discards the values: only durations are recorded.
    package func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
        NOOPMetricsHandler.instance
    }

    // Series exist as long as the process.
    package func destroyCounter(_ handler: any CounterHandler) {}
    package func destroyMeter(_ handler: any MeterHandler) {}
    package func destroyRecorder(_ handler: any RecorderHandler) {}
    package func destroyTimer(_ handler: any TimerHandler) {}

    /// Returns the instrument of a series, created on first use.
    private func instrument<Made: MetricInstrument>(
        _ name: String, _ dimensions: [(String, String)], _ kind: MetricFamily.Kind, _ make: ([Double]) -> Made
    ) -> Made {
        let labels = MetricLabels(dimensions)
        return series.withLock { series in
            var entry = series[name] ?? Series(family: MetricFamily(name, kind, "Not described."))
            if let known = entry.instruments[labels] as? Made { return known }
            var bounds: [Double] = []
            if case .histogram(let declared) = entry.family.kind { bounds = declared }
            let made = make(bounds)
            entry.instruments[labels] = made
            series[name] = entry
            return made
        }
    }
}
