import Foundation
import TestSupport
import Testing

extension OperationsTests {
    @Suite("Prewarm jobs over HTTP", .timeLimit(.minutes(10))) struct PrewarmServerTests {
        private struct Report: Decodable {
            struct Failure: Decodable {
                var url: String
                var code: String
            }
            var id: String
            var state: String
            var total: Int
            var done: Int
            var failed: Int
            var hits: Int
            var new: Int
            var bytes: Int
            var saved: Int
            var errors: [Failure]
        }

        private static let admin = "Authorization: Bearer secret"

        private func post(_ server: GifreelProcess, _ text: String, query: String = "") throws -> RawHTTPResponse {
            try server.request("POST", "/prewarm" + query, headers: [Self.admin], body: Array(text.utf8))
        }

        private func begin(_ server: GifreelProcess, _ text: String, query: String = "") throws -> String {
            struct Accepted: Decodable {
                var id: String
            }
            let answer = try post(server, text, query: query)
            try #require(answer.status == 202, "\(answer.text)")
            return try JSONDecoder().decode(Accepted.self, from: Data(answer.body)).id
        }

        private func report(_ server: GifreelProcess, _ id: String) throws -> Report {
            let answer = try server.request("GET", "/prewarm/\(id)", headers: [Self.admin])
            try #require(answer.status == 200, "\(answer.text)")
            return try JSONDecoder().decode(Report.self, from: Data(answer.body))
        }

        private func wait(_ server: GifreelProcess, _ id: String, until isReached: (Report) -> Bool) throws -> Report {
            var now = try report(server, id)
            try blockUntil("the state of the job, which is \(now)") {
                now = try report(server, id)
                return isReached(now)
            }
            return now
        }

        private func lines(_ urls: [String]) -> String {
            urls.map { "{\"url\":\"\($0)\"}" }.joined(separator: "\n")
        }

        @Test func aListIsInTheCacheWhenItsJobIsDone() throws {
            let gif = GIFBuilder.animation(frames: 20)
            let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }, "/b.gif": { _ in .ok(gif + [0]) }])
            defer { origin.stop() }
            let server = try GifreelProcess(["admin.token=secret"])
            _ = try server.mp4(origin.url("/a.gif"))
            let text =
                #"[{"url":"\#(origin.url("/a.gif"))"},{"url":"\#(origin.url("/b.gif"))","quality":70},{"url":"\#(origin.url("/no.gif"))"},{"url":"ftp://x"}]"#
            let id = try begin(server, text)
            let done = try wait(server, id) { $0.state == "done" }
            #expect(done.total == 4 && done.done == 4 && done.hits == 1 && done.new == 1 && done.failed == 2)
            #expect(Set(done.errors.map(\.code)) == ["source_not_found", "bad_source_url"])
            let hit = try server.request("GET", "/mp4,quality=70/\(origin.url("/b.gif"))")
            #expect(hit["cache-status"] == "gifreel; hit")
            #expect(done.bytes == hit.body.count + (try server.mp4(origin.url("/a.gif")).body.count))
            #expect(try server.request("GET", "/metrics").text.contains(#"gifreel_prewarm_urls_total{result="failed"} 2"#))
        }

        @Test func whatNegotiationSendsInPlaceOfASequenceIsStoredToo() throws {
            let gif = GIFBuilder.animation(frames: 3, width: 16, height: 18)
            let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }])
            defer { origin.stop() }
            let server = try GifreelProcess(["admin.token=secret"])
            let id = try begin(server, #"[{"url":"\#(origin.url("/a.gif"))","format":"awebp"}]"#)
            _ = try wait(server, id) { $0.state == "done" }
            let negotiated = try server.request("GET", "/auto/\(origin.url("/a.gif"))", headers: ["Accept: image/webp"])
            #expect(negotiated["cache-status"] == "gifreel; hit" && negotiated.body == gif)
            #expect(origin.count("/a.gif") == 1)
        }

        @Test func theCommandListsTheJobs() throws {
            let gif = GIFBuilder.animation()
            let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }])
            defer { origin.stop() }
            let server = try GifreelProcess(["admin.token=secret"])
            func list() throws -> ChildProcess.Outcome {
                try GifreelCommandLine.run(
                    ["prewarm", "--list-jobs", "--server", "http://127.0.0.1:\(server.port)"],
                    environment: ["GIFREEL_ADMIN_TOKEN": "secret"])
            }
            let none = try list()
            #expect(none.code == 0 && none.output == "no jobs", "\(none)")
            let id = try begin(server, lines([origin.url("/a.gif"), origin.url("/no.gif")]))
            _ = try wait(server, id) { $0.state == "done" }
            let one = try list()
            #expect(one.code == 0 && one.output.hasPrefix("\(id)  20"), "\(one)")
            #expect(one.output.contains("Z  done, 2 of 2 done: 0 hits, 1 new, 1 failed, "), "\(one)")
        }

        @Test func prewarmingNeedsTheAdminToken() throws {
            let server = try GifreelProcess(["admin.token=secret"])
            #expect(try server.request("POST", "/prewarm", body: [0x5b]).status == 401)
            #expect(try server.request("GET", "/prewarm/1").status == 401)
            #expect(try server.request("GET", "/prewarm/1", headers: [Self.admin]).status == 404)
            #expect(try server.request("PUT", "/prewarm")["allow"] == "GET, HEAD, POST, OPTIONS")
            #expect(try GifreelProcess().request("POST", "/prewarm", body: [0x5b]).status == 404)
        }

        @Test(arguments: ["", "[]", "{\"link\":\"x\"}", "[{\"url\":\"http://a/\"},7]", "http://a/b.gif"])
        func malformedListsAreRefused(_ text: String) throws {
            let server = try GifreelProcess(["admin.token=secret"])
            let answer = try post(server, text)
            #expect(answer.status == 400 && answer.text.contains("bad_request"))
        }

        @Test func aListBeyondTheLimitIsRefused() throws {
            let server = try GifreelProcess(["admin.token=secret", "prewarm.max_urls=2"])
            #expect(
                try post(server, lines(["http://127.0.0.1:9/1.gif", "http://127.0.0.1:9/2.gif", "http://127.0.0.1:9/3.gif"]))
                    .status == 400)
        }

        @Test func aFailingOriginIsRetried() throws {
            let gif = GIFBuilder.animation(frames: 3)
            let origin = try LoopbackOrigin(["/a.gif": { $0.number == 1 ? .status(500) : .ok(gif) }])
            defer { origin.stop() }
            let server = try GifreelProcess(["admin.token=secret"])
            let id = try begin(server, lines([origin.url("/a.gif")]), query: "?retries=5")
            let done = try wait(server, id) { $0.state == "done" }
            #expect(done.new == 1 && done.failed == 0)
        }

        @Test func aJobContinuesAfterARestart() throws {
            let gate = try LoopbackGate()
            let gif = GIFBuilder.animation(frames: 3)
            let origin = try LoopbackOrigin([
                "/a.gif": { _ in .ok(gif) }, "/b.gif": { _ in LoopbackAnswer.ok(gif + [0]).after(gate) },
                "/c.gif": { _ in .ok(gif + [0, 0]) },
            ])
            defer { origin.stop() }
            let first = try GifreelProcess(["admin.token=secret", "prewarm.concurrency=1"])
            let id = try begin(first, lines(["/a.gif", "/b.gif", "/c.gif"].map { origin.url($0) }))
            _ = try wait(first, id) { $0.done == 1 }
            try origin.waitForRequests(for: "/b.gif")
            first.kill()
            gate.open()
            let second = try GifreelProcess(["admin.token=secret", "prewarm.concurrency=1"], directory: first.directory)
            let done = try wait(second, id) { $0.state == "done" }
            #expect(done.total == 3 && done.done == 3 && done.failed == 0)
            #expect(origin.count("/a.gif") == 1)
        }

        @Test func aCancelledJobStartsNoMoreEntries() throws {
            let gate = try LoopbackGate()
            let gif = GIFBuilder.animation(frames: 3)
            let origin = try LoopbackOrigin(["/a.gif": { _ in LoopbackAnswer.ok(gif).after(gate) }])
            defer { origin.stop() }
            let server = try GifreelProcess(["admin.token=secret", "prewarm.concurrency=1"])
            let id = try begin(server, lines([origin.url("/a.gif"), origin.url("/b.gif")]))
            try origin.waitForRequests(for: "/a.gif")
            #expect(try server.request("DELETE", "/prewarm/\(id)", headers: [Self.admin]).status == 200)
            gate.open()
            let over = try wait(server, id) { $0.done == 1 }
            #expect(over.state == "cancelled" && origin.count("/b.gif") == 0)
        }
    }
}
