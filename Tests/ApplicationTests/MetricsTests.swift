import Foundation
import TestSupport
import Testing

extension OperationsTests {
    @Suite("Metrics count what the server did", .timeLimit(.minutes(10))) struct MetricsTests {
        /// The value of a sample, by its name with labels.
        private func value(_ name: String, in text: String) -> Double? {
            text.split(separator: "\n").first { $0.hasPrefix(name + " ") }.flatMap { Double($0.dropFirst(name.count + 1)) }
        }

        /// Reads the metrics until `sample` has the value, since requests are counted after they are answered.
        private func metrics(_ server: GifreelProcess, until sample: String, is wanted: Double) throws -> String {
            var text = ""
            try blockUntil("\(sample) \(wanted) among the metrics:\n\(text)") {
                text = try server.request("GET", "/metrics").text
                return value(sample, in: text) == wanted
            }
            return text
        }

        @Test func requestsFetchesAndConversionsAreCounted() throws {
            let gif = GIFBuilder.animation(frames: 8)
            let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }])
            defer { origin.stop() }
            let server = try GifreelProcess()
            let mp4 = try server.mp4(origin.url("/a.gif"))
            _ = try server.mp4(origin.url("/a.gif"))
            _ = try server.mp4(origin.url("/no.gif"))
            // Each loop hands on its own batch.
            for counted in [#"status="200",cache="miss""#, #"status="200",cache="hit""#] {
                _ = try metrics(server, until: "gifreel_http_requests_total{route=\"mp4\",\(counted)}", is: 1)
            }
            let text = try metrics(
                server, until: #"gifreel_http_requests_total{route="mp4",status="404",cache="miss"}"#, is: 1)
            #expect(value(#"gifreel_http_requests_total{route="mp4",status="200",cache="miss"}"#, in: text) == 1)
            #expect(value(#"gifreel_http_requests_total{route="mp4",status="200",cache="hit"}"#, in: text) == 1)
            #expect(value(#"gifreel_http_request_duration_seconds_count{route="mp4",cache="hit"}"#, in: text) == 1)
            #expect(value(#"gifreel_fetches_total{result="fetched"}"#, in: text) == 1)
            #expect(value(#"gifreel_fetches_total{result="source_not_found"}"#, in: text) == 1)
            #expect(value(#"gifreel_conversions_total{result="made"}"#, in: text) == 1)
            #expect(value("gifreel_conversion_source_bytes_total", in: text) == Double(gif.count))
            #expect(value("gifreel_conversion_output_bytes_total", in: text) == Double(mp4.body.count))
            #expect(value("gifreel_conversion_cpu_seconds_total", in: text) ?? 0 > 0)
            #expect(value("gifreel_cache_objects", in: text) == 1)
            #expect(value("gifreel_cache_used_bytes", in: text) ?? 0 >= Double(mp4.body.count))
            #expect(value("gifreel_cache_bytes", in: text) == Double(mp4.body.count))
            #expect(value("gifreel_workers", in: text) == 2)
            #expect(value("process_resident_memory_bytes", in: text) ?? 0 > 1_000_000)
            #expect(value("process_open_fds", in: text) ?? 0 > 5)
            #expect(value(#"gifreel_sandbox_kills_total{cause="time"}"#, in: text) == 0)
        }

        @Test func processorTimeOfFailedConversionsIsCounted() throws {
            let gif = GIFBuilder.noise(frames: 20, width: 128, height: 128)
            let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }])
            defer { origin.stop() }
            let server = try GifreelProcess(["admin.token=secret"])
            #expect(try server.request("GET", "/mp4,max_bytes=1000/\(origin.url("/a.gif"))").status == 422)
            let text = try metrics(server, until: #"gifreel_conversions_total{result="over_budget"}"#, is: 1)
            #expect(value("gifreel_conversion_cpu_seconds_total", in: text) ?? 0 > 0)
            let top = try server.request("GET", "/top?by=cpu&of=client", headers: ["Authorization: Bearer secret"])
            #expect(top.status == 200 && top.text.contains(#""key":"127.0.0.1""#), "\(top.text)")
        }

        @Test func postersAndFactsSaveNoBytes() throws {
            let gif = GIFBuilder.animation(frames: 8)
            let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }])
            defer { origin.stop() }
            let server = try GifreelProcess()
            for format in ["json", "jpg", "webp"] {
                #expect(try server.request("GET", "/\(format)/\(origin.url("/a.gif"))").status == 200, "\(format)")
            }
            let before = try metrics(server, until: #"gifreel_conversions_total{result="made"}"#, is: 3)
            let mp4 = try server.mp4(origin.url("/a.gif")).body.count
            let after = try metrics(server, until: #"gifreel_conversions_total{result="made"}"#, is: 4)
            let bytes = [
                "conversion_source": gif.count, "conversion_output": mp4, "saved": max(0, gif.count - mp4),
            ]
            for (name, count) in bytes {
                #expect(value("gifreel_\(name)_bytes_total", in: before) == 0, "\(name)")
                #expect(value("gifreel_\(name)_bytes_total", in: after) == Double(count), "\(name)")
            }
        }

        @Test func openMetricsIsSentToClientsThatAcceptIt() throws {
            let server = try GifreelProcess()
            let answer = try server.request("GET", "/metrics", headers: ["Accept: application/openmetrics-text; version=1.0.0"])
            #expect(answer.status == 200 && answer.text.hasSuffix("# EOF\n"))
            #expect(answer["content-type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8")
            #expect(try server.request("GET", "/metrics")["content-type"] == "text/plain; version=0.0.4; charset=utf-8")
        }

        @Test func metricsNeedTheAdminTokenOutsideTheAllowList() throws {
            let closed = try GifreelProcess(["metrics.allow=10.0.0.0/8"])
            #expect(try closed.request("GET", "/metrics").status == 404)
            let guarded = try GifreelProcess(["metrics.allow=10.0.0.0/8", "admin.token=secret"])
            #expect(try guarded.request("GET", "/metrics").status == 401)
            #expect(try guarded.request("GET", "/metrics", headers: ["Authorization: Bearer secret"]).status == 200)
        }

        /// `promtool` comes with Debian's prometheus; without it there is nothing to ask.
        @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/promtool")))
        func promtoolReportsNoProblem() throws {
            let gif = GIFBuilder.animation(frames: 3)
            let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }])
            defer { origin.stop() }
            let server = try GifreelProcess()
            _ = try server.mp4(origin.url("/a.gif"))
            let metrics = try server.request("GET", "/metrics").text
            let tool = URL(fileURLWithPath: "/usr/bin/promtool")
            let outcome = try ChildProcess(tool, ["check", "metrics"], input: Array(metrics.utf8)).finish()
            #expect(outcome.code == 0 && outcome.bytes.isEmpty && outcome.log.isEmpty, "\(outcome.output)\(outcome.log)")
        }
    }
}
