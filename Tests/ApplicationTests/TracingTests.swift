import Foundation
import Telemetry
import TestSupport
import Testing

extension OperationsTests {
    @Suite("Traces are read, continued and logged", .timeLimit(.minutes(10))) struct TracingTests {
        private static let trace = "4bf92f3577b34da6a3ce929d0e0e4736"

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
            try server.waitForLog("\"answered\"")
            let line = try #require(server.log.split(separator: "\n").first { $0.contains("\"answered\"") })
            let values = try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
            func text(_ name: String) -> String? { values[name] as? String }
            #expect(text("trace_id") == Self.trace && text("span_id") == sent.spanID && text("request_id") == "call-7")
            #expect(text("source_host") == "127.0.0.1" && text("cache_status") == "gifreel; fwd=miss; stored")
            for stage in ["queue_ms", "fetch_ms", "transcode_ms"] { #expect(values[stage] is Double, "\(stage)") }
        }

        @Test func factsPagesEmbedsAndObjectsAreLoggedWithTheirRequestAndTrace() throws {
            let gif = GIFBuilder.animation(frames: 3)
            let origin = try LoopbackOrigin([
                "/facts.gif": { _ in .ok(gif) }, "/page.gif": { _ in .ok(gif + [1]) }, "/embedded.gif": { _ in .ok(gif + [2]) },
            ])
            defer { origin.stop() }
            var server = try GifreelProcess(["log.format=json"])
            let object = try #require(try server.request("POST", "/png", body: gif + [9])["content-location"])
            // After a restart the object is not in memory, so its request waits for the disk.
            let directory = server.directory.deletingLastPathComponent().appendingPathComponent("gifreel-\(UUID().uuidString)")
            _ = server.terminate()
            try FileManager.default.copyItem(at: server.directory, to: directory)
            server = try GifreelProcess(["log.format=json"], directory: directory)
            let targets = [
                ("facts-1", "/json/\(origin.url("/facts.gif"))", 200), ("page-1", "/html/\(origin.url("/page.gif"))", 200),
                ("embed-1", "/oembed?url=\(origin.url("/embedded.gif"))", 200), ("object-1", object, 200),
                ("facts-2", "/json/\(origin.url("/no-facts.gif"))", 404),
                ("page-2", "/html/\(origin.url("/no-page.gif"))", 404),
                ("embed-2", "/oembed?url=\(origin.url("/no-embed.gif"))", 404),
            ]
            for (id, target, status) in targets {
                let headers = ["traceparent: 00-\(Self.trace)-00f067aa0ba902b7-01", "X-Request-Id: \(id)"]
                #expect(try server.request("GET", target, headers: headers).status == status, "\(id)")
                let message = status == 200 ? "answered" : "request failed"
                try blockUntil("“\(message)” with the id \(id) and its trace in\n\(server.log)") {
                    server.log.split(separator: "\n").contains { line in
                        ["\"\(message)\"", "\"\(id)\"", "\"\(Self.trace)\"", "\"span_id\""].allSatisfy(line.contains)
                    }
                }
            }
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
