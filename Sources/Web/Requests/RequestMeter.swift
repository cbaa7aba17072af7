package import CoreMetrics
package import HTTP
internal import Synchronization
internal import Telemetry

/// Counts finished requests.
///
/// The HTTP engine passes them in batches on the thread of the access log, so a hit spends no time on metrics.
package final class RequestMeter: HTTPObserver {
    /// The metrics of one class, created with its first request.
    private struct Instruments {
        let requests: Counter
        let duration: Timer
        let bytes: Counter
    }

    /// Consecutive requests of one class, which are added to its counters together.
    private struct Run {
        let kind: RequestClass
        let instruments: Instruments
        var count = 0
        var bytes = 0

        mutating func add(_ record: borrowing HTTPAccessRecord) {
            count += 1
            bytes += record.bytes
            instruments.duration.recordNanoseconds(record.duration * 1000)
        }

        mutating func end() {
            guard count > 0 else { return }
            instruments.requests.increment(by: count)
            instruments.bytes.increment(by: bytes)
            (count, bytes) = (0, 0)
        }
    }

    private struct State {
        var routes: RouteNames
        var instruments: [RequestClass: Instruments] = [:]
        /// The current run: most requests have the class of the previous request.
        var run: Run?
    }

    private let factory: any MetricsFactory
    private let state: Mutex<State>
    private let incomplete: Counter
    private let unobserved: Counter

    package init(mounts: some Sequence<String>, factory: any MetricsFactory) {
        state = Mutex(State(routes: RouteNames(mounts: mounts)))
        self.factory = factory
        incomplete = Counter(label: MetricFamily.cutResponses.name, factory: factory)
        unobserved = Counter(label: MetricFamily.unobserved.name, factory: factory)
    }

    /// Replaces the names of mounts. Any thread.
    package func setMounts(_ mounts: some Sequence<String>) {
        let routes = RouteNames(mounts: mounts)
        state.withLock { $0.routes = routes }
    }

    package func requestsFinished(_ batch: HTTPAccessBatch) {
        if batch.lost > 0 { unobserved.increment(by: batch.lost) }
        state.withLock { state in
            batch.forEach { record in
                let kind = RequestClass(
                    route: state.routes.index(of: record.target), status: record.status, cache: .init(record.cacheStatus))
                if state.run?.kind != kind { beginRun(of: kind, &state) }
                state.run?.add(record)
                if !record.isComplete { incomplete.increment() }
            }
            state.run?.end()
        }
    }

    private func beginRun(of kind: RequestClass, _ state: inout State) {
        state.run?.end()
        let instruments = state.instruments[kind] ?? newInstruments(kind, route: state.routes.names[kind.route])
        state.instruments[kind] = instruments
        state.run = Run(kind: kind, instruments: instruments)
    }

    private func newInstruments(_ kind: RequestClass, route name: String) -> Instruments {
        let route = ("route", name)
        let cache = ("cache", kind.cache.rawValue)
        let status = kind.status == 0 ? "none" : String(kind.status)
        return Instruments(
            requests: Counter(
                label: MetricFamily.requests.name, dimensions: [route, ("status", status), cache], factory: factory),
            duration: Timer(label: MetricFamily.requestDuration.name, dimensions: [route, cache], factory: factory),
            bytes: Counter(label: MetricFamily.responseBytes.name, dimensions: [route], factory: factory))
    }
}
