import Foundation
import TestSupport
import Testing

@Suite(
    "Every node answers the status of a request", .serialized, .timeLimit(.minutes(10)),
    .enabled(if: RedisServer.isAvailable && S3Server.Kind.chosen.isInstalled))
struct ClusterStatusTests {
    private func begin(_ node: GifreelProcess, _ url: String) throws -> String {
        let answer = try node.request("GET", "/mp4/\(url)", headers: ["Prefer: respond-async"])
        #expect(answer.status == 202)
        return try #require(answer["location"])
    }

    private func state(_ node: GifreelProcess, _ path: String) throws -> String? {
        let answer = try node.request("GET", path)
        return answer.status == 200 ? try ClusterLab.object(answer.body)["state"] as? String : nil
    }

    @Test func theOtherNodeAnswersFromTheFirstMomentToTheEnd() async throws {
        let (gif, gate) = (GIFBuilder.animation(frames: 3), try LoopbackGate())
        let lab = try await ClusterLab(["/a.gif": { _ in LoopbackAnswer.ok(gif).after(gate) }])
        defer { lab.stop() }
        let path = try begin(lab.nodes[0], lab.origin.url("/a.gif"))
        #expect(try state(lab.nodes[1], path) == "fetching")
        gate.open()
        try await waitUntil("the end on the other node") { try state(lab.nodes[1], path) == "done" }
        // A stream of events ends with the final status.
        let events = try lab.nodes[1].request("GET", path, headers: ["Accept: text/event-stream"])
        #expect(events.status == 200 && events["content-type"] == "text/event-stream")
        #expect(events.text.hasPrefix("id: end\ndata: ") && events.text.contains(#""state":"done""#))
        let again = try lab.nodes[1].request(
            "GET", path, headers: ["Accept: text/event-stream", "Last-Event-ID: end"])
        #expect(again.status == 204)
        let address = try #require(try ClusterLab.object(lab.nodes[1].request("GET", path).body)["url"] as? String)
        #expect(try lab.nodes[1].request("GET", address).status == 200)
        #expect(try lab.nodes[1].request("GET", "/status/" + String(repeating: "0", count: 32)).status == 404)
    }

    @Test func aRequestThatIsLeftOnTheOtherNodeIsCancelled() async throws {
        let gate = try LoopbackGate()
        let lab = try await ClusterLab(["/a.gif": { _ in LoopbackAnswer.ok([]).after(gate) }])
        defer { lab.stop() }
        let path = try begin(lab.nodes[0], lab.origin.url("/a.gif"))
        try await waitUntil("the fetch") { lab.origin.count("/a.gif") == 1 }
        #expect(try lab.nodes[1].request("DELETE", path).status == 204)
        #expect(try state(lab.nodes[1], path) == nil)
        try await waitUntil("the end of the work on the first node") {
            try state(lab.nodes[0], path) == nil && ClusterLab.cacheState(lab.nodes[0])["in_progress"] as? Int == 0
        }
        #expect(try lab.nodes[1].request("DELETE", path).status == 404)
        gate.open()
    }

    @Test func aRequestThatIsLeftOnItsNodeIsGoneOnTheOther() async throws {
        let gate = try LoopbackGate()
        let lab = try await ClusterLab(["/a.gif": { _ in LoopbackAnswer.ok([]).after(gate) }])
        defer { lab.stop() }
        let path = try begin(lab.nodes[0], lab.origin.url("/a.gif"))
        #expect(try state(lab.nodes[1], path) == "fetching")
        #expect(try lab.nodes[0].request("DELETE", path).status == 204)
        try await waitUntil("the end on the other node") { try state(lab.nodes[1], path) == nil }
        gate.open()
    }

    @Test func withoutRedisANodeAnswersItsOwnStatusesOnly() async throws {
        let gif = GIFBuilder.animation(frames: 3)
        let lab = try await ClusterLab(["/a.gif": { _ in .ok(gif) }])
        defer { lab.stop() }
        lab.redis.stop()
        let path = try begin(lab.nodes[0], lab.origin.url("/a.gif"))
        try await waitUntil("the end on its own node") { try state(lab.nodes[0], path) == "done" }
        #expect(try lab.nodes[1].request("GET", path).status == 503)
    }
}
