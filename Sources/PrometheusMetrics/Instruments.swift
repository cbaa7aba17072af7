internal import CoreMetrics
internal import Synchronization

/// What a series holds when it is written down.
enum SeriesValue: Equatable {
    case number(Double)
    /// Observations in each bucket, the infinite one last, not yet added up; and the sum of all.
    case histogram(counts: [UInt64], sum: Double)
}

/// One series behind a handler of swift-metrics.
protocol Instrument: AnyObject, Sendable {
    var value: SeriesValue { get }
}

/// Counts whole things without a lock.
final class CounterInstrument: Instrument, CounterHandler {
    private let count = Atomic<Int64>(0)

    var value: SeriesValue { .number(Double(count.load(ordering: .relaxed))) }

    /// What would make the counter smaller is ignored: a counter only grows.
    func increment(by amount: Int64) {
        if amount > 0 { count.add(amount, ordering: .relaxed) }
    }

    func reset() { count.store(0, ordering: .relaxed) }
}

/// Counts fractions, such as seconds.
final class FloatingPointCounterInstrument: Instrument, FloatingPointCounterHandler {
    private let sum = Mutex(0.0)

    var value: SeriesValue { .number(sum.withLock { $0 }) }

    func increment(by amount: Double) {
        if amount > 0 { sum.withLock { $0 += amount } }
    }

    func reset() { sum.withLock { $0 = 0 } }
}

/// The last value that was set; also behind recorders that do not aggregate.
final class GaugeInstrument: Instrument, MeterHandler, RecorderHandler {
    private let current = Mutex(0.0)

    var value: SeriesValue { .number(current.withLock { $0 }) }

    func set(_ value: Int64) { set(Double(value)) }

    func set(_ value: Double) { current.withLock { $0 = value } }

    func increment(by amount: Double) { current.withLock { $0 += amount } }

    func decrement(by amount: Double) { current.withLock { $0 -= amount } }

    func record(_ value: Int64) { set(value) }

    func record(_ value: Double) { set(value) }
}

/// Counts observations by size; times are taken in nanoseconds and kept in seconds.
final class HistogramInstrument: Instrument, RecorderHandler, TimerHandler {
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

    func record(_ value: Int64) { record(Double(value)) }

    func record(_ value: Double) {
        // A bucket holds what is at most its bound. Few buckets: walking them beats dividing them.
        let bucket = bounds.firstIndex { value <= $0 } ?? bounds.count
        state.withLock { state in
            state.counts[bucket] += 1
            state.sum += value
        }
    }

    func recordNanoseconds(_ duration: Int64) { record(Double(duration) / 1e9) }

    /// The unit is in the family's name.
    func preferDisplayUnit(_ unit: TimeUnit) {}
}
