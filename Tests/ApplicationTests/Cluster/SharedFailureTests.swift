import TestSupport
import Testing

/// Failures of sources, shared by two nodes.
@Suite(
    "Nodes share the failures of sources", .serialized, .timeLimit(.minutes(10)),
    .enabled(if: RedisServer.isAvailable && S3Server.Kind.chosen.isInstalled))
struct SharedFailureTests {
    private static let page = Array("<!doctype html><html><body>No such cat</body></html>".utf8)
    /// A header with a canvas, and nothing else.
    private static let cutOff = Array(GIFBuilder.animation().prefix(13))
    private static let large = Array(GIFBuilder.animation()) + [UInt8](repeating: 0, count: 21 << 20)

    @Test(
        arguments: [
            ("404", 404, "source_not_found"), ("410", 410, "source_gone"), ("500", 502, "source_failed"),
            ("page", 415, "not_an_animation"), ("cut-off", 422, "corrupt_gif"), ("large", 422, "too_large"),
        ])
    func aFailureThatOneNodeHasFoundIsAnsweredByTheOtherWithoutAFetch(_ path: String, _ status: Int, _ code: String)
        async throws
    {
        let lab = try await ClusterLab([
            "/404": { _ in .status(404) }, "/410": { _ in .status(410) }, "/500": { _ in .status(500) },
            "/page": { _ in .ok(Self.page) }, "/cut-off": { _ in .ok(Self.cutOff) }, "/large": { _ in .ok(Self.large) },
        ])
        defer { lab.stop() }
        let answers = try lab.nodes.map { try $0.mp4(lab.origin.url("/\(path)")) }
        #expect(answers.map(\.status) == [status, status])
        #expect(answers.allSatisfy { $0.text.contains("\"code\":\"\(code)\"") }, "\(answers.map(\.text))")
        #expect(answers.map { $0["cache-status"] } == ["gifreel; fwd=miss", "gifreel; hit; detail=negative"])
        #expect(lab.origin.count("/\(path)") == 1)
        // The node remembers it.
        #expect(try lab.nodes[1].mp4(lab.origin.url("/\(path)")).status == status)
        #expect(lab.origin.count("/\(path)") == 1)
    }

    @Test func aMissingSourceIsMissingForAllItsRenditionsOnTheOtherNode() async throws {
        let lab = try await ClusterLab(["/a.gif": { _ in .status(404) }])
        defer { lab.stop() }
        #expect(try lab.nodes[0].mp4(lab.origin.url("/a.gif")).status == 404)
        try await waitUntil("the announcement") { try ClusterLab.cacheState(lab.nodes[1])["negative"] as? Int == 1 }
        #expect(try lab.nodes[1].request("GET", "/jpg/\(lab.origin.url("/a.gif"))").status == 404)
        #expect(lab.origin.count("/a.gif") == 1)
    }

    @Test func aPurgeClearsTheFailureOnEveryNode() async throws {
        let lab = try await ClusterLab(["/a.gif": { _ in .status(404) }])
        defer { lab.stop() }
        let url = lab.origin.url("/a.gif")
        for node in lab.nodes { #expect(try node.mp4(url).status == 404) }
        lab.origin.on("/a.gif", .ok(GIFBuilder.animation()))
        #expect(try ClusterLab.purge(lab.nodes[1], "/mp4/\(url)").status == 200)
        for node in lab.nodes { #expect(try node.mp4(url).status == 200) }
    }

    @Test func aRequestThatWaitsForAnotherNodesFetchGetsItsFailure() async throws {
        let gate = try LoopbackGate()
        let lab = try await ClusterLab(["/a.gif": { _ in LoopbackAnswer.status(404).after(gate) }])
        defer { lab.stop() }
        let request = Array("GET /mp4/\(lab.origin.url("/a.gif")) HTTP/1.1\r\nHost: a\r\n\r\n".utf8)
        var first = try RawHTTPClient(port: lab.nodes[0].port)
        var second = try RawHTTPClient(port: lab.nodes[1].port)
        try first.send(request)
        try second.send(request)
        try await waitUntil("two misses") {
            try lab.nodes.allSatisfy { try ClusterLab.cacheState($0)["in_progress"] as? Int == 1 }
        }
        try await waitUntil("the fetch") { lab.origin.count("/a.gif") == 1 }
        gate.open()
        #expect(try [first.readResponse().status, second.readResponse().status] == [404, 404])
        #expect(lab.origin.count("/a.gif") == 1)
    }

    @Test func aNodeWithOtherLimitsTriesTheSourceItself() async throws {
        let lab = try await ClusterLab(["/a.gif": { _ in .ok(Self.large) }])
        defer { lab.stop() }
        let url = lab.origin.url("/a.gif")
        #expect(try lab.nodes[0].mp4(url).status == 422)
        let generous = try await lab.node("c", ["sources.max_bytes=64MiB"])
        defer { generous.kill() }
        #expect(try generous.mp4(url).status == 200)
    }
}
