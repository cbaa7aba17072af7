import Foundation
import TestSupport
import Testing

@Suite("The first visitor of a mount gets the GIF as it arrives", .timeLimit(.minutes(10))) struct OriginalOnMissTests {
    private let gif = GIFBuilder.animation(frames: 40, width: 160, height: 120)

    private func server(_ origin: LoopbackOrigin, _ more: [String] = []) throws -> GifreelProcess {
        try GifreelProcess(
            [
                "mounts.m.origin=\(origin.url("/"))", "mounts.m.negotiate=true", "mounts.m.on_miss=original",
                "admin.token=secret",
            ] + more)
    }

    @Test func fiftyVisitorsCauseOneFetchAndOneConversion() throws {
        let (gif, gate) = (gif, try LoopbackGate())
        let half = gif.count / 2
        let origin = try LoopbackOrigin([
            "/a.gif": { _ in
                LoopbackAnswer(
                    steps: [
                        .send(Array("HTTP/1.1 200 OK\r\nContent-Length: \(gif.count)\r\n\r\n".utf8) + gif[..<half]),
                        .wait(until: gate), .send(Array(gif[half...])),
                    ], keepsAlive: true)
            }
        ])
        defer { origin.stop() }
        let server = try server(origin)
        let visitors = try (0..<50).map { _ in try Visitor(port: server.port) }
        for visitor in visitors { try visitor.client.send("GET", "/m/a.gif", headers: ["Accept: video/mp4"]) }
        for visitor in visitors {
            let head = try visitor.client.readHead()
            #expect(head["cache-status"] == "gifreel; fwd=miss; detail=original" && head["content-length"] == "\(gif.count)")
            #expect(try visitor.client.read(half) == Array(gif[..<half]))
        }
        gate.open()
        for visitor in visitors { #expect(try visitor.client.read(gif.count - half) == Array(gif[half...])) }
        try blockUntil("the video") {
            let next = try server.request("GET", "/m/a.gif", headers: ["Accept: video/mp4"])
            return next["content-type"] == "video/mp4" && next["cache-status"] == "gifreel; hit"
        }
        #expect(origin.count("/a.gif") == 1)
    }

    @Test func aVisitorThatDoesNotReadHoldsNeitherTheFetchNorTheVideo() throws {
        // More than the buffers of the sockets take.
        let gif = gif + [UInt8](repeating: 0, count: 12 << 20)
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }])
        defer { origin.stop() }
        let server = try server(origin)
        let idle = try Visitor(port: server.port)
        try idle.client.send("GET", "/m/a.gif", headers: ["Accept: video/mp4"])
        _ = try idle.client.readHead()
        // Without the body: twelve megabytes per attempt take a busy machine longer than the video.
        try blockUntil("the video") {
            try server.request("HEAD", "/m/a.gif", headers: ["Accept: video/mp4"])["content-type"] == "video/mp4"
        }
        #expect(origin.count("/a.gif") == 1)
        #expect(try idle.client.read(gif.count) == gif)
    }

    @Test func aGIFWhoseConversionFailsIsStillShown() throws {
        let gif = gif
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }])
        defer { origin.stop() }
        let server = try server(origin, ["limits.side=20"])
        for _ in 0..<4 {
            let answer = try server.request("GET", "/m/a.gif", headers: ["Accept: video/mp4"])
            #expect(answer.status == 200 && answer.body == gif && answer["vary"] == "Accept")
        }
        try blockUntil("the failure") { server.log.contains("could not produce a rendition") }
        #expect(try server.request("GET", "/m/a.mp4").status == 422)
    }
}

/// A client in a list.
private final class Visitor {
    var client: RawHTTPClient

    init(port: Int) throws {
        client = try RawHTTPClient(port: port)
    }
}
