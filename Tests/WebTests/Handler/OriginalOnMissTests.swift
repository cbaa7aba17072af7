import Fetch
import Foundation
import TestSupport
import Testing

@testable import Web

/// `on_miss: original`: a miss is answered with the GIF as it arrives, and the rendition is produced behind it.
@Suite("A negotiated miss is answered with the GIF as it arrives", .timeLimit(.minutes(10))) struct OriginalOnMissTests {
    private static let gif = GIFBuilder.animation(frames: 40, width: 160, height: 120)
    private static let half = gif.count / 2
    private static let status = "gifreel; fwd=miss; detail=original"

    private func run(
        _ paths: [String: LoopbackOrigin.Handler], rate: RateLimit? = nil, maxBytes: Int? = nil,
        _ body: (WebFixture, LoopbackOrigin) async throws -> Void
    ) async throws {
        let origin = try LoopbackOrigin(paths)
        defer { origin.stop() }
        let configure: (inout WebFixture.Settings) throws -> Void = { settings in
            var mount = Mount(origin: try SourceURL(origin.url("/")))
            mount.negotiates = true
            mount.onMiss = .original
            settings.policy.mounts = ["m": mount]
            settings.policy.rateLimit = rate
            settings.maxBytes = maxBytes
        }
        try await WebFixture.run([:], configure) { web async throws in try await body(web, origin) }
    }

    /// An origin's answer whose second half waits at a gate.
    private func halves(
        _ gate: LoopbackGate, declaresLength: Bool = true, then end: [LoopbackAnswer.Step]? = nil
    ) -> LoopbackOrigin.Handler {
        { _ in
            let length = declaresLength ? "Content-Length: \(Self.gif.count)\r\n" : ""
            let head = Array("HTTP/1.1 200 OK\r\n\(length)Connection: close\r\n\r\n".utf8)
            return LoopbackAnswer(
                steps: [.send(head + Self.gif[..<Self.half]), .wait(until: gate)]
                    + (end ?? [.send(Array(Self.gif[Self.half...]))]))
        }
    }

    private func request(_ web: WebFixture, _ accept: String = "video/mp4") async throws -> RawHTTPResponse {
        try await web.request("GET", "/m/a.gif", headers: ["Accept: \(accept)"])
    }

    /// Waits until the target answers with its rendition.
    private func rendition(_ web: WebFixture, _ accept: String = "video/mp4") async throws -> RawHTTPResponse {
        var response = try await request(web, accept)
        try await waitUntil("the rendition to be stored") {
            response = try await request(web, accept)
            if response["cache-status"] == "gifreel; hit" { return true }
            #expect(response.body == Self.gif)
            return false
        }
        return response
    }

    @Test func theFirstVisitorHasTheGIFAndTheNextOneTheRendition() async throws {
        try await run(["/a.gif": { _ in .ok(Self.gif) }]) { web, origin async throws in
            let first = try await request(web)
            #expect(first.status == 200 && first.body == Self.gif && first["cache-status"] == Self.status)
            #expect(first["content-type"] == "image/gif" && first["content-length"] == "\(Self.gif.count)")
            #expect(first["cache-control"] == "no-cache" && first["vary"] == "Accept")
            #expect(first["access-control-allow-origin"] == "*" && first.fieldCount("access-control-allow-origin") == 1)
            #expect(first["x-content-type-options"] == "nosniff" && first.fieldCount("x-content-type-options") == 1)
            #expect(try await rendition(web)["content-type"] == "video/mp4")
            #expect(origin.count("/a.gif") == 1)
            // The conversion is at the expense of the client that caused it, although its response was the GIF.
            #expect((web.usage.top(.cpu, of: .client, limit: 1).first?.amount ?? 0) > 0)
            // The line of the access log counts it as a miss.
            #expect(RequestClass.CacheUse(Self.status) == .miss)
        }
    }

    /// A cache validates a response without a tag by its `Date`, and would keep the GIF with the validators of the rendition.
    @Test func aCacheThatHasTheGIFGetsTheRendition() async throws {
        let gate = try LoopbackGate()
        try await run(["/a.gif": halves(gate)]) { web, _ async throws in
            let port = try #require(web.port)
            let tags = try await onThread { () -> [String] in
                let clients = try (0..<2).map { _ in try ClientBox(port: port) }
                let tags = try clients.map { box -> String in
                    try box.client.send("GET", "/m/a.gif", headers: ["Accept: video/mp4"])
                    return try #require(try box.client.readHead()["etag"])
                }
                gate.open()
                for box in clients { #expect(try box.client.read(Self.gif.count) == Self.gif) }
                return tags
            }
            #expect(Set(tags).count == 2)
            let modified = try #require(try await rendition(web)["last-modified"])
            for tag in tags {
                let fields = ["Accept: video/mp4", "If-None-Match: \(tag)", "If-Modified-Since: \(modified)"]
                let next = try await web.request("GET", "/m/a.gif", headers: fields)
                #expect(next.status == 200 && next["content-type"] == "video/mp4")
            }
        }
    }

    @Test func bytesArePassedOnBeforeTheOriginHasSentTheRest() async throws {
        let gate = try LoopbackGate()
        try await run(["/a.gif": halves(gate)]) { web, origin async throws in
            let port = try #require(web.port)
            try await onThread {
                var early = try RawHTTPClient(port: port)
                try early.send("GET", "/m/a.gif", headers: ["Accept: video/mp4"])
                #expect(try early.readHead()["content-length"] == "\(Self.gif.count)")
                #expect(try early.read(Self.half) == Array(Self.gif[..<Self.half]))
                // A late client begins with the first byte, and a HEAD request needs the head only.
                var late = try RawHTTPClient(port: port)
                try late.send("GET", "/m/a.gif", headers: ["Accept: image/gif"])
                #expect(try late.readHead()["cache-status"] == Self.status)
                #expect(try late.read(Self.half) == Array(Self.gif[..<Self.half]))
                var head = try RawHTTPClient(port: port)
                #expect(
                    try head.request("HEAD", "/m/a.gif", headers: ["Accept: video/*"])["content-length"] == "\(Self.gif.count)")
                gate.open()
                #expect(try early.read(Self.gif.count - Self.half) == Array(Self.gif[Self.half...]))
                #expect(try late.read(Self.gif.count - Self.half) == Array(Self.gif[Self.half...]))
                // The connection can be used again.
                #expect(try early.request("GET", "/healthz").status == 200)
            }
            #expect(try await rendition(web)["content-type"] == "video/mp4")
            #expect(try await rendition(web, "image/gif").body == Self.gif)
            #expect(origin.count("/a.gif") <= 2)
        }
    }

    @Test func manyVisitorsAtOnceCauseOneFetch() async throws {
        let gate = try LoopbackGate()
        try await run(["/a.gif": halves(gate)]) { web, origin async throws in
            let port = try #require(web.port)
            try await onThread {
                let connections = try (0..<50).map { _ in try ClientBox(port: port) }
                for (index, connection) in connections.enumerated() {
                    let accept = index % 2 == 0 ? "video/mp4" : "image/avif, video/mp4"
                    try connection.client.send("GET", "/m/a.gif", headers: ["Accept: \(accept)"])
                }
                for connection in connections {
                    #expect(try connection.client.readHead()["cache-status"] == Self.status)
                    #expect(try connection.client.read(Self.half) == Array(Self.gif[..<Self.half]))
                }
                gate.open()
                for connection in connections {
                    #expect(try connection.client.read(Self.gif.count - Self.half) == Array(Self.gif[Self.half...]))
                }
            }
            #expect(try await rendition(web)["content-type"] == "video/mp4")
            #expect(origin.count("/a.gif") == 1)
        }
    }

    @Test func aVisitorThatLeavesDoesNotStopTheRendition() async throws {
        let gate = try LoopbackGate()
        try await run(["/a.gif": halves(gate)]) { web, origin async throws in
            let port = try #require(web.port)
            try await onThread {
                var client = try RawHTTPClient(port: port)
                try client.send("GET", "/m/a.gif", headers: ["Accept: video/mp4"])
                _ = try client.readHead()
            }
            gate.open()
            #expect(try await rendition(web)["content-type"] == "video/mp4")
            #expect(origin.count("/a.gif") == 1)
        }
    }

    @Test(arguments: [true, false]) func aFetchThatBreaksOffEndsTheConnectionWithoutAFalseEnd(_ declaresLength: Bool)
        async throws
    {
        let gate = try LoopbackGate()
        // Without a length the origin sends chunks, so that its own end can be told from a break.
        let chunked: LoopbackOrigin.Handler = { _ in
            let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\(String(Self.half, radix: 16))\r\n"
            return LoopbackAnswer(steps: [.send(Array(head.utf8) + Self.gif[..<Self.half]), .wait(until: gate)])
        }
        let counted = halves(gate, then: [])
        try await run(["/a.gif": declaresLength ? counted : chunked]) { web, _ async throws in
            let port = try #require(web.port)
            try await onThread {
                var client = try RawHTTPClient(port: port)
                try client.send("GET", "/m/a.gif", headers: ["Accept: video/mp4"])
                let head = try client.readHead()
                #expect(head["content-length"] == (declaresLength ? "\(Self.gif.count)" : nil))
                #expect(head["transfer-encoding"] == (declaresLength ? nil : "chunked"))
                var old = try RawHTTPClient(port: port)
                try old.send("GET", "/m/a.gif", version: "1.0", headers: ["Accept: video/mp4"])
                _ = try old.readHead()
                gate.open()
                let rest = client.readToEnd()
                if declaresLength {
                    #expect(rest.bytes == Array(Self.gif[..<Self.half]) && !rest.isReset)
                } else {
                    #expect(!String(decoding: rest.bytes, as: UTF8.self).hasSuffix("0\r\n\r\n"))
                    // A client of HTTP/1.0 would take the end of the connection for the end of the body.
                    let end = old.readToEnd()
                    #expect(end.isReset)
                }
            }
            // The failure is remembered, and answered before the next body begins.
            #expect(try await request(web).status == 502)
            try await waitUntil("the log line") { web.log.all.contains { $0.message == "could not produce a rendition" } }
        }
    }

    @Test func aSourceThatIsNoGIFOrTooLargeIsAnErrorBeforeTheFirstByte() async throws {
        let large = Self.gif
        let gate = try LoopbackGate()
        try await run(
            [
                "/a.gif": { _ in .ok(Array("<html>".utf8)) }, "/large.gif": { _ in .ok(large) },
                "/gone.gif": { _ in .status(410) },
                "/endless.gif": { _ in
                    LoopbackAnswer(
                        steps: [
                            .send(Array("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nGIF89a".utf8)), .wait(until: gate),
                            .sendForever([7]),
                        ])
                },
            ], maxBytes: Self.gif.count - 1
        ) { web, _ async throws in
            for (path, code) in [
                ("a", "not_an_animation"), ("large", "too_large"), ("gone", "source_gone"), ("none", "source_not_found"),
            ] {
                let response = try await web.request("GET", "/m/\(path).gif", headers: ["Accept: video/mp4"])
                #expect(response.code == code && response["vary"] == "Accept", "\(path)")
            }
            // The size of an endless body is known only when it is exceeded.
            let port = try #require(web.port)
            try await onThread {
                var client = try RawHTTPClient(port: port)
                try client.send("GET", "/m/endless.gif", headers: ["Accept: video/mp4"])
                #expect(try client.readHead().status == 200)
                gate.open()
                #expect(client.readToEnd().bytes.count < Self.gif.count * 2)
            }
            #expect(try await web.request("GET", "/m/endless.gif", headers: ["Accept: video/mp4"]).code == "too_large")
        }
    }

    @Test func aRenditionThatIsLargerThanItsGIFLeavesTheGIFInTheCache() async throws {
        let tiny = GIFBuilder.animation(frames: 1, width: 2, height: 2)
        try await run(["/a.gif": { _ in .ok(tiny) }]) { web, origin async throws in
            let first = try await request(web)
            #expect(first.body == tiny && first["cache-status"] == Self.status)
            try await waitUntil("the GIF to be stored") {
                let next = try await request(web)
                #expect(next.body == tiny && next["content-type"] == "image/gif")
                return next["cache-status"] == "gifreel; hit" && next["etag"] != nil
            }
            #expect(origin.count("/a.gif") == 1)
        }
    }

    @Test func aGIFThatCannotBeConvertedIsStillAnsweredWithItself() async throws {
        // A header without a frame: the signature is a GIF's, and there is nothing to convert.
        let broken = Array(Self.gif[..<13])
        try await run(["/a.gif": { _ in .ok(broken) }]) { web, _ async throws in
            for _ in 0..<5 {
                let response = try await request(web)
                #expect(response.status == 200 && response.body == broken)
                #expect(response["cache-control"] == "no-cache" || response["cache-control"] == "no-store")
            }
            #expect(try await web.request("GET", "/m/a.mp4").code == "corrupt_gif")
        }
    }

    @Test func theOriginMayForbidToStoreAnything() async throws {
        try await run(["/a.gif": { _ in .ok(Self.gif, ["Cache-Control: no-store"]) }]) { web, origin async throws in
            for round in 1...3 {
                let response = try await request(web)
                #expect(response.body == Self.gif && response["cache-control"] == "no-store")
                #expect(origin.count("/a.gif") <= round)
            }
        }
    }

    @Test func aClientWithoutAllowanceGetsNoFetch() async throws {
        try await run(["/a.gif": { _ in .ok(Self.gif) }], rate: RateLimit(perMinute: 1, burst: 1)) { web, origin async throws in
            #expect(try await request(web).status == 200)
            let refused = try await web.request("GET", "/m/b.gif", headers: ["Accept: video/mp4"])
            #expect(refused.status == 429 && refused["vary"] == "Accept" && origin.count("/b.gif") == 0)
        }
    }

    @Test func conditionsAndRangesOfTheRequestDoNotApplyToTheArrivingGIF() async throws {
        try await run(["/a.gif": { _ in .ok(Self.gif) }]) { web, _ async throws in
            let response = try await web.request(
                "GET", "/m/a.gif", headers: ["Accept: video/mp4", "Range: bytes=0-1", "If-None-Match: \"x\""])
            #expect(response.status == 200 && response.body == Self.gif && response["content-range"] == nil)
        }
    }
}

/// A client in a list.
private final class ClientBox {
    var client: RawHTTPClient

    init(port: Int) throws {
        client = try RawHTTPClient(port: port)
    }
}

extension RequestClass.CacheUse {
    init(_ text: String) {
        self = Array(text.utf8).withUnsafeBytes { Self($0) }
    }
}
