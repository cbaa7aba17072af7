import HTTPClient
import Logging
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Telemetry

/// Collects the documents of an exporter, and answers as a test says.
final class Collector: Sendable {
    private let documents = Mutex<[String]>([])
    private let answer: @Sendable (_ number: Int) -> DeliveryResult

    private init(_ answer: @escaping @Sendable (_ number: Int) -> DeliveryResult) {
        self.answer = answer
    }

    /// Runs `body` with an exporter that sends after a millisecond and repeats at once, and stops everything.
    ///
    /// - Parameter answer: Gets the number of the request, from 1 on. May block.
    static func run(
        _ configure: (inout DeliveryLimits) -> Void = { _ in },
        answer: @escaping @Sendable (_ number: Int) -> DeliveryResult = { _ in .delivered },
        registry: PrometheusRegistry = PrometheusRegistry(MetricFamily.instruments),
        _ body: (Collector, SpanExporter) async throws -> Void
    ) async throws {
        let collector = Collector(answer)
        var limits = SpanExporter.limits(items: 2048)
        limits.interval = .milliseconds(1)
        limits.backoff = Backoff(first: .milliseconds(1), longest: .milliseconds(1))
        configure(&limits)
        let threads = WorkThreads(count: 1, limit: 4, name: "test-collector")
        let exporter = SpanExporter(
            TraceResource(service: "gifreel", version: "1.2.3", node: "node-1"), limits: limits,
            meter: LabelledCounter(MetricFamily.traceSpans, label: "result", values: SpanExporter.results, factory: registry),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        ) { document in await threads.run { collector.receive(document) } ?? .unavailable(cause: "no thread is free") }
        let result: Result<Void, any Error>
        do {
            result = .success(try await body(collector, exporter))
        } catch {
            result = .failure(error)
        }
        await exporter.stop(within: .seconds(10))
        threads.close()
        try result.get()
    }

    private func receive(_ document: String) -> DeliveryResult {
        let number = documents.withLock { documents in
            documents.append(document)
            return documents.count
        }
        return answer(number)
    }

    /// All requests so far.
    var all: [String] { documents.withLock { $0 } }

    /// The spans of all requests so far.
    func spans() throws -> [ExportedSpan] { try all.flatMap(Self.spans) }

    static func spans(_ document: String) throws -> [ExportedSpan] { try ExportedSpan.all(in: Array(document.utf8)) }
}
