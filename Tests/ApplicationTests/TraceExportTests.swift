import Foundation
import Telemetry
import TestSupport
import Testing

extension OperationsTests {
    @Suite("Traces are exported to a collector", .timeLimit(.minutes(10))) struct TraceExportTests {
        private static let trace = "4bf92f3577b34da6a3ce929d0e0e4736"

        /// The text of all requests that a collector got.
        private func received(_ collector: LoopbackOrigin) -> String {
            collector.requests.map { String(decoding: $0.body, as: UTF8.self) }.joined(separator: "\n")
        }

        @Test func theStepsOfAMissAreSentToTheCollector() throws {
            let gif = GIFBuilder.animation(frames: 3)
            // Other bytes each time, so that nothing is reused.
            let origin = try LoopbackOrigin(["/a.gif": { .ok(gif + [UInt8($0.number)]) }])
            defer { origin.stop() }
            let collector = try LoopbackOrigin([
                "/v1/traces": { _ in .ok(Array("{}".utf8), ["Content-Type: application/json"]) }
            ])
            defer { collector.stop() }
            let server = try GifreelProcess([
                "tracing.endpoint=\(collector.url("/v1/traces"))", "tracing.headers=X-Key: secret", "tracing.sample=0",
                "cluster.node=node-7", "server.trusted_proxies=127.0.0.1",
            ])
            // Not sampled: no trace is begun.
            #expect(try server.mp4(origin.url("/a.gif?1")).status == 200)
            let header = "traceparent: 00-\(Self.trace)-00f067aa0ba902b7-01"
            #expect(try server.mp4(origin.url("/a.gif?2"), headers: [header]).status == 200)
            let names = ["GET /mp4", "fetch", "queue", "convert", "publish"]
            try blockUntil("all spans in \(received(collector))") {
                names.allSatisfy { received(collector).contains("\"name\":\"\($0)\"") }
            }
            let request = try #require(collector.requests.first)
            #expect(request.method == "POST" && request.headers["content-type"] == "application/json")
            #expect(request.headers["x-key"] == "secret")
            let text = received(collector)
            for (key, value) in [("service.name", "gifreel"), ("service.instance.id", "node-7")] {
                #expect(text.contains(#"{"key":"\#(key)","value":{"stringValue":"\#(value)"}}"#))
            }
            #expect(text.matches(of: /"traceId":"([0-9a-f]+)"/).allSatisfy { $0.1 == Self.trace })
            let metrics = try server.request("GET", "/metrics").text
            #expect(metrics.contains(#"gifreel_trace_spans_total{result="dropped"} 0"#))
            #expect(server.terminate() == 0)
        }

        /// The protocol permits repetitions after 429, 502, 503 and 504 only.
        @Test func aRequestIsNotRepeatedAfterAnInternalErrorOfTheCollector() throws {
            let gif = GIFBuilder.animation(frames: 3)
            let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }])
            defer { origin.stop() }
            let collector = try LoopbackOrigin(["/v1/traces": { _ in .status(500) }])
            defer { collector.stop() }
            let server = try GifreelProcess(["tracing.endpoint=\(collector.url("/v1/traces"))"])
            #expect(try server.mp4(origin.url("/a.gif")).status == 200)
            try blockUntil("spans that are given up") {
                try server.request("GET", "/metrics").text.contains(/gifreel_trace_spans_total\{result="failed"\} [1-9]/)
            }
            #expect(Set(collector.requests.map(\.body)).count == collector.requests.count)
            #expect(server.terminate() == 0)
        }

        @Test func aStopSendsTheSpansThatWait() throws {
            let gif = GIFBuilder.animation(frames: 3)
            let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }])
            defer { origin.stop() }
            let collector = try LoopbackOrigin(["/v1/traces": { _ in .ok(Array("{}".utf8)) }])
            defer { collector.stop() }
            let server = try GifreelProcess(["tracing.endpoint=\(collector.url("/v1/traces"))"])
            #expect(try server.mp4(origin.url("/a.gif")).status == 200)
            #expect(server.terminate() == 0)
            #expect(received(collector).contains(#""name":"publish""#))
        }

        @Test func aCollectorThatStallsDelaysNoRequestAndSpansAreDropped() throws {
            let gif = GIFBuilder.animation(frames: 3)
            let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }])
            defer { origin.stop() }
            let gate = try LoopbackGate()
            let collector = try LoopbackOrigin(["/v1/traces": { _ in LoopbackAnswer.ok([]).after(gate) }])
            defer { collector.stop() }
            let server = try GifreelProcess(["tracing.endpoint=\(collector.url("/v1/traces"))", "tracing.queue=4"])
            var number = 0
            // Each round fills the queue of four spans while the collector holds its first request.
            try blockUntil("dropped spans", within: .seconds(120)) {
                number += 1
                #expect(try server.mp4(origin.url("/a.gif?\(number)")).status == 200)
                let metrics = try server.request("GET", "/metrics").text
                let dropped = metrics.firstMatch(of: /gifreel_trace_spans_total\{result="dropped"\} (\d+)/).flatMap {
                    Int($0.1)
                }
                return (dropped ?? 0) > 0
            }
            gate.open()
            #expect(server.terminate() == 0)
        }

        @Test(arguments: [
            ("tracing.endpoint=collector:4318", "an http or https URL"), ("tracing.headers=no field", "tracing.headers"),
            ("tracing.sample=101", "from 0 to 100"),
        ])
        func aWrongSettingStopsTheStart(_ setting: String, _ words: String) throws {
            let others = setting.hasPrefix("tracing.endpoint") ? [] : ["--set", "tracing.endpoint=http://127.0.0.1:4318/"]
            let outcome = try GifreelCommandLine.run(["serve", "--check", "--set", setting] + others)
            #expect(outcome.code != 0 && outcome.log.contains(words), "\(outcome.log)")
        }
    }
}
