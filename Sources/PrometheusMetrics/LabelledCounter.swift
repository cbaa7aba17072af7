package import CoreMetrics
internal import Synchronization

/// The counters of a family with one label. Its values come from this program, so their number is bounded.
package final class LabelledCounter: Sendable {
    private let family: MetricFamily
    private let label: String
    private let factory: any MetricsFactory
    private let counters = Mutex<[String: Counter]>([:])

    /// - Parameter values: Values reported as 0 from the start, because a rate needs a first sample.
    package init(_ family: MetricFamily, label: String, values: [String] = [], factory: any MetricsFactory) {
        self.family = family
        self.label = label
        self.factory = factory
        for value in values { _ = counter(value) }
    }

    package func increment(_ value: String, by amount: Int = 1) {
        counter(value).increment(by: amount)
    }

    private func counter(_ value: String) -> Counter {
        counters.withLock { counters in
            if let known = counters[value] { return known }
            let made = Counter(label: family.name, dimensions: [(label, value)], factory: factory)
            counters[value] = made
            return made
        }
    }
}
