package import CoreMetrics
internal import Synchronization

/// The value of a series when it is read.
enum SeriesValue: Equatable {
    case number(Double)
    /// The non-cumulative counts per bucket, with the infinite bucket last, and the sum of all observations.
    case histogram(counts: [UInt64], sum: Double)
}

/// An instrument of swift-metrics that holds one series.
protocol MetricInstrument: AnyObject, Sendable {
    var value: SeriesValue { get }
}

/// A lock-free counter of integers.
final class CounterInstrument: MetricInstrument, CounterHandler {
    private let count = Atomic<Int64>(0)

    var value: SeriesValue { .number(Double(count.load(ordering: .relaxed))) }

    /// Negative amounts are ignored, because a counter must not decrease.
    func increment(by amount: Int64) {
        if amount > 0 { count.add(amount, ordering: .relaxed) }
    }

    func reset() { count.store(0, ordering: .relaxed) }
}

/// A histogram. It accepts durations in nanoseconds and reports seconds.
final class HistogramInstrument: MetricInstrument, TimerHandler {
    private struct State {
        var counts: [UInt64]
        var sum = 0.0
    }

    private let bounds: [Double]
    private let state: Mutex<State>

    init(bounds: [Double]) {
        self.bounds = bounds
        state = Mutex(State(counts: Array(repeating: 0, count: bounds.count + 1)))
    }

    var value: SeriesValue { state.withLock { .histogram(counts: $0.counts, sum: $0.sum) } }

    func recordNanoseconds(_ duration: Int64) {
        let value = Double(duration) / 1e9
        // A bucket counts observations up to its bound. With few buckets, a linear search is faster than a binary search.
        let bucket = bounds.firstIndex { value <= $0 } ?? bounds.count
        state.withLock { state in
            state.counts[bucket] += 1
            state.sum += value
        }
    }
}

/// The counters of a family with one label. The label's values come from this program, so their number is bounded.
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
            let counter = Counter(label: family.name, dimensions: [(label, value)], factory: factory)
            counters[value] = counter
            return counter
        }
    }
}
