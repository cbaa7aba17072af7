import TestSupport
import Testing

@Suite(
    "A status outlasts an outage of Redis", .serialized, .timeLimit(.minutes(10)),
    .enabled(if: RedisServer.isAvailable && S3Server.Kind.chosen.isInstalled))
struct StatusOutageTests {
    /// Runs `body` with the path of a status whose source waits for the gate.
    private func run(_ body: (ClusterLab, LoopbackGate, String) async throws -> Void) async throws {
        let (gif, gate) = (GIFBuilder.animation(frames: 3), try LoopbackGate())
        // Longer than the outage.
        let lab = try await ClusterLab(["/a.gif": { _ in LoopbackAnswer.ok(gif).after(gate) }], ["sources.timeout=60s"])
        defer { lab.stop() }
        let target = "/mp4/\(lab.origin.url("/a.gif"))"
        let answer = try lab.nodes[0].request("GET", target, headers: ["Prefer: respond-async"])
        try await body(lab, gate, try #require(answer["location"]))
    }

    private func isDone(_ node: GifreelProcess, _ path: String) throws -> Bool {
        let answer = try node.request("GET", path)
        return answer.status == 200 && answer.text.contains(#""state":"done""#)
    }

    @Test func theOtherNodeHasTheFinalStatusAfterAnOutageAtTheEndOfTheWork() async throws {
        try await run { lab, gate, path async throws in
            lab.redis.stop()
            gate.open()
            try await waitUntil("the end on its own node") { try isDone(lab.nodes[0], path) }
            try await lab.redis.start()
            try await waitUntil("the end on the other node") { try isDone(lab.nodes[1], path) }
        }
    }

    @Test func theEventsOfTheOtherNodeGoOnAfterAnOutage() async throws {
        try await run { lab, gate, path async throws in
            var client = try RawHTTPClient(port: lab.nodes[1].port, timeout: 60)
            try client.send("GET", path, headers: ["Accept: text/event-stream", "Connection: close"])
            let head = try client.readHead()
            #expect(head.status == 200)
            var text = ""
            while !text.contains("\n\n") { text += String(decoding: try client.read(1), as: UTF8.self) }
            lab.redis.stop()
            // A stream without events sends comments.
            while !text.contains(":\n\n") { text += String(decoding: try client.read(1), as: UTF8.self) }
            try await lab.redis.start()
            gate.open()
            text += String(decoding: client.readToEnd().bytes, as: UTF8.self)
            #expect(text.contains("id: end\ndata: ") && text.contains(#""state":"done""#))
        }
    }
}
