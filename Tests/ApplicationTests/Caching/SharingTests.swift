import Foundation
import TestSupport
import Testing

@Suite("Requests share fetches and conversions, within limits", .timeLimit(.minutes(10))) struct SharingTests {
    private let gif = GIFBuilder.animation(frames: 6, width: 33, height: 21, delay: 7)

    /// Sends a GET without waiting for its answer.
    private func ask(_ server: GifreelProcess, _ target: String) throws -> RawHTTPClient {
        let client = try RawHTTPClient(port: server.port)
        try client.send(Array("GET \(target) HTTP/1.1\r\nHost: a\r\n\r\n".utf8))
        return client
    }

    @Test func renditionsOfOneSourceShareItsFetch() throws {
        let (gif, gate) = (gif, try LoopbackGate())
        let origin = try LoopbackOrigin(["/a.gif": { _ in LoopbackAnswer.ok(gif).after(gate) }])
        defer { origin.stop() }
        let server = try GifreelProcess(["admin.token=secret"])
        var plain = try ask(server, "/mp4/\(origin.url("/a.gif"))")
        var coarse = try ask(server, "/mp4,quality=5/\(origin.url("/a.gif"))")
        try blockUntil("two renditions in progress") { try missesInProgress(server) == 2 }
        gate.open()
        let answers = (try plain.readResponse(), try coarse.readResponse())
        #expect(answers.0.status == 200 && answers.1.status == 200 && answers.0["etag"] != answers.1["etag"])
        #expect(origin.count("/a.gif") == 1)
    }

    @Test func manyClientsOfANewURLCauseOneFetchAndOneConversion() throws {
        let (gif, gate) = (gif, try LoopbackGate())
        let origin = try LoopbackOrigin(["/a.gif": { _ in LoopbackAnswer.ok(gif).after(gate) }])
        defer { origin.stop() }
        let server = try GifreelProcess()
        let clients = try (0..<100).map { _ in Holder(try ask(server, "/mp4/\(origin.url("/a.gif"))")) }
        try origin.waitForRequests(for: "/a.gif")
        gate.open()
        let answers = try clients.map { try $0.readResponse() }
        #expect(answers.allSatisfy { $0.status == 200 } && Set(answers.map(\.body)).count == 1)
        #expect(origin.count("/a.gif") == 1 && server.log.matches(of: /produced a rendition/).count == 1)
    }

    @Test func whenTheLastClientLeavesTheFetchEndsAndNothingIsStuck() throws {
        let (gif, gate) = (gif, try LoopbackGate())
        let origin = try LoopbackOrigin([
            "/a.gif": { request in request.number == 1 ? LoopbackAnswer.ok(gif).after(gate) : .ok(gif) }
        ])
        defer { origin.stop() }
        let server = try GifreelProcess(["admin.token=secret"])
        do {
            let clients = try (0..<3).map { _ in Holder(try ask(server, "/mp4/\(origin.url("/a.gif"))")) }
            try origin.waitForRequests(for: "/a.gif")
            withExtendedLifetime(clients) {}
        }
        try blockUntil("the end of all work") { try missesInProgress(server) == 0 }
        #expect(try server.mp4(origin.url("/a.gif")).status == 200)
        #expect(origin.count("/a.gif") == 2)
    }

    @Test func missesBeyondTheQueueAreRefusedBeforeAnyFetch() throws {
        let (gif, gate) = (gif, try LoopbackGate())
        let origin = try LoopbackOrigin()
        defer { origin.stop() }
        for name in ["a", "b"] { origin.on("/\(name).gif", LoopbackAnswer.ok(gif).after(gate)) }
        origin.on("/c.gif", .ok(gif))
        origin.on("/hit.gif", .ok(gif))
        let server = try GifreelProcess(["transcode.workers=1", "transcode.queue=1", "admin.token=secret"])
        #expect(try server.mp4(origin.url("/hit.gif")).status == 200)
        var first = try ask(server, "/mp4/\(origin.url("/a.gif"))")
        var second = try ask(server, "/mp4/\(origin.url("/b.gif"))")
        try origin.waitForRequests(for: "/a.gif")
        try origin.waitForRequests(for: "/b.gif")
        for _ in 0..<5 {
            let refused = try server.mp4(origin.url("/c.gif"))
            #expect(refused.status == 503 && refused.text.contains("overloaded") && refused["retry-after"] != nil)
        }
        #expect(origin.count("/c.gif") == 0)
        let upload = try server.request("POST", "/mp4", body: GIFBuilder.animation(frames: 2))
        #expect(upload.status == 503 && upload["retry-after"] != nil)
        // Hits never queue, and a request for a rendition in progress joins it.
        #expect(try server.mp4(origin.url("/hit.gif"))["cache-status"] == "gifreel; hit")
        var joining = try ask(server, "/mp4/\(origin.url("/a.gif"))")
        gate.open()
        #expect(try first.readResponse().status == 200)
        #expect(try second.readResponse().status == 200)
        #expect(try joining.readResponse().status == 200)
        #expect(try server.mp4(origin.url("/c.gif")).status == 200)
    }

    @Test func memoryForGIFsIsBounded() throws {
        let (gif, gate) = (gif, try LoopbackGate())
        let origin = try LoopbackOrigin(["/a.gif": { _ in LoopbackAnswer.ok(gif).after(gate) }])
        defer { origin.stop() }
        origin.on("/b.gif", .ok(gif))
        let server = try GifreelProcess(["sources.max_bytes=1MiB", "transcode.queue_bytes=1500KiB"])
        var first = try ask(server, "/mp4/\(origin.url("/a.gif"))")
        try origin.waitForRequests(for: "/a.gif")
        // An upload needs its memory at once. A fetch waits until the one in progress needs less than the largest source.
        #expect(try server.request("POST", "/mp4", body: gif + [UInt8](repeating: 0, count: 700 << 10)).status == 503)
        var second = try ask(server, "/mp4/\(origin.url("/b.gif"))")
        try blockUntil("the second fetch to wait") {
            try server.request("GET", "/metrics").text.contains("gifreel_fetches_waiting 1\n")
        }
        #expect(origin.count("/b.gif") == 0)
        gate.open()
        #expect(try first.readResponse().status == 200)
        #expect(try second.readResponse().status == 200)
    }

    @Test func aRequestThatWaitsTooLongForAWorkerGets503() throws {
        let gif = gif
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }])
        defer { origin.stop() }
        var long = GIFBuilder(width: 2000, height: 2000)
        for index in 0..<4000 { long.add(GIFBuilder.Frame(width: 1, height: 1, color: UInt8(2 + index % 3))) { $0.delay = 2 } }
        origin.on("/long.gif", .ok(long.finish()))
        let server = try GifreelProcess([
            "transcode.workers=1", "transcode.queue_timeout=300ms", "limits.total_pixels=100000000000", "limits.cpu=3s",
            "admin.token=secret",
        ])
        var busy = try ask(server, "/mp4/\(origin.url("/long.gif"))")
        try blockUntil("a running worker") { server.workerCount > 0 }
        let answer = try server.mp4(origin.url("/a.gif"))
        #expect(answer.status == 503 && answer["retry-after"] != nil)
        // The one that runs goes on to its end, and then all is as before.
        // It ends at its limit of processor time, or of wall-clock time if the machine has no processor for it.
        #expect([422, 503].contains(try busy.readResponse().status))
        #expect(try missesInProgress(server) == 0)
        #expect(try server.mp4(origin.url("/a.gif")).status == 200)
    }

    @Test func aPurgeOvertakesWhatIsInFlight() throws {
        let (old, gate) = (gif, try LoopbackGate())
        let new = GIFBuilder.animation(frames: 3)
        let origin = try LoopbackOrigin([
            "/a.gif": { request in request.number == 1 ? LoopbackAnswer.ok(old).after(gate) : .ok(new) }
        ])
        defer { origin.stop() }
        let server = try GifreelProcess(["admin.token=secret"])
        let target = "/mp4/\(origin.url("/a.gif"))"
        var before = try ask(server, target)
        try origin.waitForRequests(for: "/a.gif")
        #expect(try server.request("PURGE", target, headers: ["Authorization: Bearer secret"]).status == 200)
        // It does not join what was begun before the purge.
        let after = try server.request("GET", target)
        #expect(try MP4Boxes(after.body).durations.count == 3)
        gate.open()
        #expect(try MP4Boxes(before.readResponse().body).durations.count == 6)
        #expect(try server.request("GET", target).body == after.body)
    }

    private func missesInProgress(_ server: GifreelProcess) throws -> Int? {
        let answer = try server.request("GET", "/cache", headers: ["Authorization: Bearer secret"])
        let facts = try JSONSerialization.jsonObject(with: Data(answer.body)) as? [String: Any]
        return facts?["in_progress"] as? Int
    }
}

/// A connection that is closed with its last holder.
private final class Holder {
    private var client: RawHTTPClient

    init(_ client: consuming RawHTTPClient) {
        self.client = client
    }

    func readResponse() throws -> RawHTTPResponse { try client.readResponse() }
}
