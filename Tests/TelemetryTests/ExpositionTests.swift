import CoreMetrics
import Telemetry
import Testing

@Suite("Metrics are written in the Prometheus and OpenMetrics formats") struct ExpositionTests {
    private static let requests = MetricFamily("app_requests_total", .counter, "Requests.")
    private static let times = MetricFamily("app_wait_seconds", .histogram([0.1, 1]), "Waiting.")
    private static let load = MetricFamily("app_load", .gauge, "Load\\now.")

    private func filled() -> PrometheusRegistry {
        let registry = PrometheusRegistry([Self.requests, Self.times])
        Counter(label: "app_requests_total", dimensions: [("path", "a\"b\\c\nd")], factory: registry).increment(by: 3)
        let timer = Timer(label: "app_wait_seconds", factory: registry)
        for milliseconds in [100, 101, 5000] { timer.recordMilliseconds(milliseconds) }
        registry.onCollect { [MetricSample(Self.load, 0.5)] }
        return registry
    }

    @Test func prometheusTextFollowsItsDocumentation() {
        #expect(
            filled().text(.prometheus) == #"""
                # HELP app_load Load\\now.
                # TYPE app_load gauge
                app_load 0.5
                # HELP app_requests_total Requests.
                # TYPE app_requests_total counter
                app_requests_total{path="a\"b\\c\nd"} 3
                # HELP app_wait_seconds Waiting.
                # TYPE app_wait_seconds histogram
                app_wait_seconds_bucket{le="0.1"} 1
                app_wait_seconds_bucket{le="1.0"} 2
                app_wait_seconds_bucket{le="+Inf"} 3
                app_wait_seconds_sum 5.201
                app_wait_seconds_count 3

                """#)
    }

    @Test func openMetricsNamesCountersWithoutTotalAndEnds() {
        let lines = filled().text(.openMetrics).split(separator: "\n")
        #expect(lines.contains("# TYPE app_requests counter"))
        #expect(lines.contains("# UNIT app_wait_seconds seconds"))
        #expect(lines.contains(#"app_requests_total{path="a\"b\\c\nd"} 3"#))
        #expect(lines.last == "# EOF")
    }

    @Test func instrumentsOfOneSeriesAreOne() {
        let registry = PrometheusRegistry([Self.requests])
        for _ in 0..<2 { Counter(label: "app_requests_total", factory: registry).increment() }
        #expect(registry.text(.prometheus).contains("app_requests_total 2\n"))
    }

    @Test func countersOnlyGrow() {
        let registry = PrometheusRegistry([Self.requests])
        let counter = Counter(label: "app_requests_total", factory: registry)
        counter.increment(by: 2)
        counter.increment(by: -1)
        #expect(registry.text(.prometheus).contains("app_requests_total 2\n"))
    }

    @Test func familiesWithoutSeriesAreLeftOut() {
        #expect(PrometheusRegistry([Self.requests, Self.times]).text(.prometheus).isEmpty)
    }
}
