import Foundation
import Web
import TestSupport
import Testing

extension OperationsTests {
    @Suite("Traces are read, continued and logged", .timeLimit(.minutes(3))) struct TracingTests {
        private static let trace = "4bf92f3577b34da6a3ce929d0e0e4736"

        @Test(arguments: [
            "", "00", "00-\(trace)-00f067aa0ba902b7", "00-\(trace)-00f067aa0ba902b7-01-more",
            "ff-\(trace)-00f067aa0ba902b7-01", "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-\(trace)-0000000000000000-01", "00-\(trace.uppercased())-00f067aa0ba902b7-01", "00-\(trace)-00f067aa0ba902b-01",
        ])
        func malformedTracesAreNone(_ text: String) {
            #expect(TraceParent(text) == nil)
        }

        @Test func aNewerVersionMayCarryMore() {
            #expect(TraceParent("01-\(Self.trace)-00f067aa0ba902b7-01-more")?.traceID == Self.trace)
        }

        @Test func aChildIsAnotherSpanOfTheSameTrace() throws {
            let parent = try #require(TraceParent("00-\(Self.trace)-00f067aa0ba902b7-01"))
            let child = parent.child()
            #expect(child.traceID == parent.traceID && child.spanID != parent.spanID && child.spanID.count == 16)
            #expect(TraceParent(child.description) == child && child.description.hasSuffix("-01"))
        }

        @Test func aTraceIsPassedOnToTheOriginAndLogged() throws {
            let gif = GIFBuilder.animation(frames: 3)
            let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }])
            defer { origin.stop() }
            let server = try GifreelProcess(["log.format=json"])
            let answer = try server.mp4(
                origin.url("/a.gif"),
                headers: ["traceparent: 00-\(Self.trace)-00f067aa0ba902b7-01", "tracestate: a=1", "X-Request-Id: call-7"])
            #expect(answer.status == 200)
            let fields = try #require(origin.requests.last?.headers)
            let sent = try #require(fields["traceparent"].flatMap { TraceParent($0) })
            #expect(sent.traceID == Self.trace && sent.spanID != "00f067aa0ba902b7" && fields["tracestate"] == "a=1")
            let line = try #require(server.log.split(separator: "\n").first { $0.contains("\"answered\"") })
            let values = try JSONDecoder().decode([String: String].self, from: Data(line.utf8))
            #expect(values["trace_id"] == Self.trace && values["span_id"] == sent.spanID && values["request_id"] == "call-7")
            #expect(values["source_host"] == "127.0.0.1" && values["cache_status"] == "gifreel; fwd=miss; stored")
            for stage in ["queue_ms", "fetch_ms", "transcode_ms"] { #expect(values[stage].flatMap { Double($0) } != nil) }
        }

        @Test func withoutATraceNoneIsBegun() throws {
            let gif = GIFBuilder.animation(frames: 3)
            let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }])
            defer { origin.stop() }
            let server = try GifreelProcess()
            #expect(try server.mp4(origin.url("/a.gif"), headers: ["traceparent: nonsense"]).status == 200)
            #expect(origin.requests.last?.headers["traceparent"] == nil)
        }
    }
}
