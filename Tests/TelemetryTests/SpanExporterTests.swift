import Foundation
import HTTPClient
import TestSupport
import Testing
import Tracing

@testable import Telemetry

@Suite("Spans are exported in batches, and a slow collector holds up nobody") struct SpanExporterTests {
    private func record(_ count: Int, _ exporter: SpanExporter) {
        let tracer = OTLPTracer(exporter, share: 1)
        for _ in 0..<count { tracer.startSpan("request", context: .topLevel, ofKind: .server).end() }
    }

    private func count(_ result: String, _ registry: PrometheusRegistry) -> Int {
        let line = registry.text(.prometheus).split(separator: "\n").first {
            $0.hasPrefix("gifreel_trace_spans_total{result=\"\(result)\"} ")
        }
        return line?.split(separator: " ").last.flatMap { Int($0) } ?? -1
    }

    @Test func spansAreSentInBatches() async throws {
        let registry = PrometheusRegistry(MetricFamily.instruments)
        try await Collector.run({ $0.batch = 10 }, registry: registry) { collector, exporter in
            record(25, exporter)
            try await waitUntil("all spans") { count("exported", registry) == 25 }
            let sizes = try collector.all.map { try Collector.spans($0).count }
            #expect(sizes.allSatisfy { (1...10).contains($0) } && sizes.reduce(0, +) == 25)
            #expect(count("dropped", registry) == 0 && count("failed", registry) == 0)
            // After a pause, the next span is sent too.
            record(1, exporter)
            try await waitUntil("the last span") { count("exported", registry) == 26 }
        }
    }

    @Test func aStalledCollectorCostsABoundedQueueAndNoTime() async throws {
        let registry = PrometheusRegistry(MetricFamily.instruments)
        let gate = DispatchSemaphore(value: 0)
        let answer: @Sendable (Int) -> DeliveryResult = { _ in
            gate.wait()
            gate.signal()
            return .delivered
        }
        try await Collector.run(
            {
                $0.items = 50
                $0.batch = 10
            }, answer: answer, registry: registry
        ) { collector, exporter in
            record(1, exporter)
            try await waitUntil("a request that stalls") { !collector.all.isEmpty }
            // Each call returns although the collector does not answer.
            record(1000, exporter)
            #expect(exporter.waiting == 50 && count("dropped", registry) == 951)
            #expect(collector.all.count == 1)
            gate.signal()
            try await waitUntil("what was queued") { count("exported", registry) == 50 }
        }
    }

    @Test(arguments: [429, 502, 503, 504]) func aRequestIsRepeatedAfterATemporaryFailure(_ status: Int) async throws {
        let registry = PrometheusRegistry(MetricFamily.instruments)
        let answer: @Sendable (Int) -> DeliveryResult = {
            $0 == 1 ? DeliveryResult(status: status) : $0 == 2 ? .unavailable(cause: "a test") : .delivered
        }
        try await Collector.run(answer: answer, registry: registry) { collector, exporter in
            record(1, exporter)
            try await waitUntil("the third request") { count("exported", registry) == 1 }
            #expect(collector.all.count == 3 && Set(collector.all).count == 1)
        }
    }

    @Test(arguments: [(400, 1), (413, 1), (429, 3), (503, 3)]) func whatCannotBeExportedIsCounted(
        _ status: Int, _ attempts: Int
    ) async throws {
        let registry = PrometheusRegistry(MetricFamily.instruments)
        try await Collector.run({ $0.attempts = 3 }, answer: { _ in DeliveryResult(status: status) }, registry: registry) {
            collector, exporter in
            record(2, exporter)
            try await waitUntil("the failure") { count("failed", registry) == 2 }
            #expect(try collector.all.filter { try Collector.spans($0).count > 0 }.count <= 2 * attempts)
            #expect(collector.all.count >= attempts)
        }
    }

    @Test func aStopSendsWhatWaits() async throws {
        let registry = PrometheusRegistry(MetricFamily.instruments)
        try await Collector.run({ $0.interval = .seconds(3600) }, registry: registry) { collector, exporter in
            record(3, exporter)
            await exporter.stop(within: .seconds(60))
            let sent = try collector.spans()
            #expect(sent.count == 3 && count("exported", registry) == 3)
            record(1, exporter)
            #expect(count("dropped", registry) == 1)
        }
    }

    @Test func aStopGivesUpAfterItsLimit() async throws {
        let registry = PrometheusRegistry(MetricFamily.instruments)
        try await Collector.run(
            { $0.attempts = 1_000_000 }, answer: { _ in .unavailable(cause: "a test") }, registry: registry
        ) { collector, exporter in
            record(1, exporter)
            try await waitUntil("an attempt") { !collector.all.isEmpty }
            record(2, exporter)
            await exporter.stop(within: .milliseconds(1))
            #expect(count("failed", registry) == 3 && exporter.waiting == 0)
        }
    }
}
