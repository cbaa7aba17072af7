import Digests
import Foundation
import SystemIO
import TestSupport
import Testing

extension OperationsTests {
    @Suite("Webhooks of a running server", .timeLimit(.minutes(10))) struct WebhookServerTests {
        private static let key = "0123456789abcdef0123456789abcdef"
        private static let gif = GIFBuilder.animation(frames: 3)
        private static let admin = "Authorization: Bearer secret"

        /// A server that may call the paths below `/hooks` of a receiver.
        private func server(_ receiver: LoopbackOrigin, directory: URL? = nil) throws -> GifreelProcess {
            try GifreelProcess(
                ["webhooks.allow=127.0.0.1:\(receiver.port)/hooks", "webhooks.key=\(Self.key)", "admin.token=secret"],
                directory: directory)
        }

        /// Checks the signature of a delivery, and returns its document.
        private func document(_ delivery: LoopbackRequest) throws -> [String: Any] {
            let time = try #require(delivery.headers["gifreel-timestamp"])
            let code = HMACSHA256(key: Self.key.utf8).code(for: Array("\(time).".utf8) + delivery.body)
            #expect(delivery.method == "POST" && delivery.headers["gifreel-signature"] == "v1=\(Hex.encode(code))")
            return try #require(try JSONSerialization.jsonObject(with: Data(delivery.body)) as? [String: Any])
        }

        private func callback(_ url: String) -> String { PercentEncoding.encode(url) }

        @Test func theOutcomeIsSignedAndRepeatedAfterAnError() throws {
            let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(Self.gif) }])
            defer { origin.stop() }
            let receiver = try LoopbackOrigin(["/hooks/x": { $0.number == 1 ? .status(500) : .ok([]) }])
            defer { receiver.stop() }
            let server = try server(receiver)
            let target = "/mp4,callback=\(callback(receiver.url("/hooks/x")))/" + origin.url("/a.gif")
            let accepted = try server.request("GET", target, headers: ["Prefer: respond-async"])
            #expect(accepted.status == 202)
            try blockUntil("the second attempt") { receiver.count("/hooks/x") == 2 }
            let deliveries = receiver.requests
            #expect(deliveries.allSatisfy { $0.headers["gifreel-status"] == accepted["location"] })
            #expect(deliveries[0].body == deliveries[1].body)
            for delivery in deliveries {
                let status = try document(delivery)
                #expect(status["state"] as? String == "done")
                let url = try #require(status["url"] as? String)
                #expect(url == "/mp4/" + origin.url("/a.gif"))
                #expect(try server.request("GET", url)["cache-status"] == "gifreel; hit")
            }
            try blockUntil("the count of deliveries") {
                try server.request("GET", "/metrics").text.contains(#"gifreel_webhooks_total{result="delivered"} 1"#)
            }
        }

        @Test func aReceiverThatIsNotAllowedIsRefusedBeforeAnythingIsFetched() throws {
            let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(Self.gif) }])
            defer { origin.stop() }
            let receiver = try LoopbackOrigin(["/other": { _ in .ok([]) }])
            defer { receiver.stop() }
            let server = try server(receiver)
            let target = "/mp4,callback=\(callback(receiver.url("/other")))/" + origin.url("/a.gif")
            let refused = try server.request("GET", target, headers: ["Prefer: respond-async"])
            #expect(refused.status == 400 && refused.text.contains("bad_option"))
            let body = Array(#"[{"url":"\#(origin.url("/a.gif"))"}]"#.utf8)
            let list = try server.request(
                "POST", "/prewarm?callback=\(callback(receiver.url("/other")))", headers: [Self.admin], body: body)
            #expect(list.status == 400 && list.text.contains("bad_option"))
            #expect(origin.requests.isEmpty && receiver.requests.isEmpty)
            // Without a receiver in the settings, no callback is permitted.
            let other = try GifreelProcess(["admin.token=secret"])
            let off = try other.request(
                "POST", "/prewarm?callback=\(callback(receiver.url("/hooks/x")))", headers: [Self.admin], body: body)
            #expect(off.status == 400 && off.text.contains("is not available on this server"))
        }

        @Test func theEndOfAPrewarmListIsReportedOnceWithItsCounts() throws {
            let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(Self.gif) }])
            defer { origin.stop() }
            let receiver = try LoopbackOrigin(["/hooks/list": { $0.number == 1 ? .status(503) : .ok([]) }])
            defer { receiver.stop() }
            let server = try server(receiver)
            let body = Array(#"[{"url":"\#(origin.url("/a.gif"))"},{"url":"\#(origin.url("/no.gif"))"}]"#.utf8)
            let accepted = try server.request(
                "POST", "/prewarm?callback=\(callback(receiver.url("/hooks/list")))", headers: [Self.admin], body: body)
            #expect(accepted.status == 202)
            try blockUntil("the count of deliveries") {
                let metrics = try server.request("GET", "/metrics").text
                return metrics.contains(#"gifreel_webhooks_total{result="delivered"} 1"#)
                    && metrics.contains("gifreel_webhooks_pending 0")
            }
            #expect(receiver.count("/hooks/list") == 2)
            let delivery = try #require(receiver.requests.last)
            #expect(delivery.headers["gifreel-status"] == accepted["location"])
            let report = try document(delivery)
            #expect(report["state"] as? String == "done" && report["total"] as? Int == 2 && report["done"] as? Int == 2)
            #expect(report["failed"] as? Int == 1 && report["new"] as? Int == 1)
            #expect((report["errors"] as? [[String: Any]])?.first?["code"] as? String == "source_not_found")
            // A restart does not send it again.
            let directory = try copy(server)
            let second = try self.server(receiver, directory: directory)
            let location = try #require(accepted["location"])
            #expect(try second.request("GET", location, headers: [Self.admin]).text.contains(#""state":"done""#))
            #expect(try second.request("GET", "/metrics").text.contains("gifreel_webhooks_pending 0"))
            #expect(receiver.count("/hooks/list") == 2)
        }

        @Test func aReportThatCouldNotBeSentBeforeAStopIsSentAfterTheNextStart() throws {
            let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(Self.gif) }])
            defer { origin.stop() }
            let gate = try LoopbackGate()
            let receiver = try LoopbackOrigin(["/hooks/list": { _ in LoopbackAnswer.ok([]).after(gate) }])
            defer { receiver.stop() }
            let first = try server(receiver)
            let body = Array(#"[{"url":"\#(origin.url("/a.gif"))"}]"#.utf8)
            let accepted = try first.request(
                "POST", "/prewarm?callback=\(callback(receiver.url("/hooks/list")))", headers: [Self.admin], body: body)
            #expect(accepted.status == 202)
            try receiver.waitForRequests(for: "/hooks/list")
            let directory = try copy(first)
            gate.open()
            let second = try server(receiver, directory: directory)
            try blockUntil("the delivery after the restart") {
                try second.request("GET", "/metrics").text.contains(#"gifreel_webhooks_total{result="delivered"} 1"#)
            }
            #expect(receiver.count("/hooks/list") == 2 && origin.count("/a.gif") == 1)
        }

        /// Stops a server, and returns a copy of its directory, which it removes itself.
        private func copy(_ server: GifreelProcess) throws -> URL {
            let directory = server.directory.deletingLastPathComponent().appendingPathComponent("gifreel-\(UUID().uuidString)")
            #expect(server.terminate() == 0)
            try FileManager.default.copyItem(at: server.directory, to: directory)
            return directory
        }
    }
}
