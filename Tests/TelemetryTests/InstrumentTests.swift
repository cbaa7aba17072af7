import CoreMetrics
import Glibc
import TestSupport
import Testing

@testable import Telemetry

@Suite("Instruments of swift-metrics count and measure") struct InstrumentTests {
    private func text(_ body: (PrometheusRegistry) -> Void) -> String {
        let registry = PrometheusRegistry([])
        body(registry)
        return registry.text(.prometheus)
    }

    @Test func theValuesOfALabelCanBeSeenBeforeTheFirstEvent() {
        let family = MetricFamily("results_total", .counter, "Results.")
        let registry = PrometheusRegistry([family])
        let counter = LabelledCounter(family, label: "result", values: ["hit", "new"], factory: registry)
        counter.increment("new", by: 2)
        counter.increment("failed")
        let lines = registry.text(.prometheus).split(separator: "\n").filter { $0.hasPrefix("results_total") }
        #expect(
            lines == [
                "results_total{result=\"failed\"} 1", "results_total{result=\"hit\"} 0", "results_total{result=\"new\"} 2",
            ])
    }

    @Test(arguments: [
        (0.0, "0"), (-3, "-3"), (1e15, "1000000000000000"), (0.25, "0.25"), (Double.infinity, "+Inf"),
        (-Double.infinity, "-Inf"), (Double.nan, "NaN"),
    ])
    func aNumberIsWrittenAsPrometheusReadsIt(_ number: Double, _ expected: String) {
        let lines = text { registry in
            registry.onCollect { [MetricSample(MetricFamily("value", .gauge, "A value."), number)] }
        }
        #expect(lines.hasSuffix("\nvalue \(expected)\n"))
    }

    @Test func theProcessCountsItsDescriptors() async throws {
        func open() -> Int { (0..<4096).count { fcntl($0, F_GETFD) >= 0 } }
        func value(_ name: String) throws -> Double {
            try #require(ProcessReadings().samples().first { $0.family.name == name }).value
        }
        // Other tests open and close descriptors meanwhile.
        try await waitUntil("a count while nothing is opened") {
            let before = open()
            let found = try value("process_open_fds")
            return found == Double(before) && open() == before
        }
        #expect(try value("process_resident_memory_bytes") > Double(1 << 20))
        #expect(try value("process_cpu_seconds_total") > 0)
    }
}
