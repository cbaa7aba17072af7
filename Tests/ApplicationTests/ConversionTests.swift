import Foundation
import TestSupport
import Testing

@Suite("A GIF becomes a looping MP4", .timeLimit(.minutes(10))) struct ConversionTests {
    private let gif = GIFBuilder.animation(frames: 6, width: 33, height: 21, delay: 7)

    @Test func aGIFsURLBecomesAnMP4AndTheSecondRequestIsAHit() throws {
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }])
        defer { origin.stop() }
        let server = try GifreelProcess()
        let first = try server.mp4(origin.url("/a.gif"))
        #expect(first.status == 200)
        #expect(first["cache-status"] == "gifreel; fwd=miss; stored")
        #expect(first["content-type"] == "video/mp4")
        #expect(first["accept-ranges"] == "bytes")
        #expect(first.permits(86400, ", stale-while-revalidate=604800, stale-if-error=604800"))
        #expect(first["access-control-allow-origin"] == "*")
        #expect(first["server-timing"]?.contains("transcode;dur=") == true)
        let boxes = try MP4Boxes(first.body)
        #expect(boxes.durations == Array(repeating: 7, count: 6))
        #expect(boxes.width == 34 && boxes.height == 22)
        let second = try server.mp4(origin.url("/a.gif"))
        #expect(second["cache-status"] == "gifreel; hit")
        #expect(second.body == first.body && second["etag"] == first["etag"])
        #expect(origin.count("/a.gif") == 1)
    }

    @Test func allFormsOfAURLShareOneEntry() throws {
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }])
        defer { origin.stop() }
        let server = try GifreelProcess(["mounts.media.origin=\(origin.url("/"))"])
        let address = "127.0.0.1:\(origin.port)/a.gif?v=1"
        let encoded = "http%3A%2F%2F127.0.0.1%3A\(origin.port)%2Fa.gif%3Fv%3D1"
        let targets = [
            "/mp4/http://\(address)", "/mp4/http:/\(address)", "/mp4/\(encoded)", "/mp4?url=\(encoded)",
            "/mp4,quality=60/http://\(address)", "/mp4?quality=60&url=\(encoded)", "/mp4?url=\(encoded)&bg=FFFFFF",
        ]
        let answers = try targets.map { try server.request("GET", $0) }
        #expect(answers.allSatisfy { $0.status == 200 && $0.body == answers[0].body })
        #expect(answers.dropFirst().allSatisfy { $0["cache-status"] == "gifreel; hit" })
        #expect(origin.count("/a.gif") == 1)
        // The mount's source has no query, so it is another source with the same bytes.
        let mounted = try server.request("GET", "/media/a.mp4")
        #expect(mounted.status == 200 && mounted["etag"] == answers[0]["etag"])
        #expect(try server.request("GET", "/media/a.gif")["cache-status"] == "gifreel; hit")
        #expect(server.storedObjects().count == 1)
    }

    @Test func optionsMakeOtherRenditions() throws {
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }])
        defer { origin.stop() }
        let server = try GifreelProcess()
        let plain = try server.mp4(origin.url("/a.gif"))
        let coarse = try server.request("GET", "/mp4,quality=5/\(origin.url("/a.gif"))")
        #expect(coarse.status == 200 && coarse.body.count < plain.body.count && coarse["etag"] != plain["etag"])
    }

    @Test func requestsAtOnceShareOneFetchAndOneConversion() throws {
        let gate = try LoopbackGate()
        let origin = try LoopbackOrigin(["/a.gif": { _ in LoopbackAnswer.ok(gif).after(gate) }])
        defer { origin.stop() }
        let server = try GifreelProcess()
        let answers = try atOnce(20) { index in
            // All are waiting before the origin answers.
            if index == 19 { gate.open() }
            return try server.mp4(origin.url("/a.gif"))
        }
        #expect(answers.allSatisfy { $0.status == 200 && $0.body == answers[0].body })
        #expect(origin.count("/a.gif") == 1)
        #expect(answers.filter { $0["cache-status"] == "gifreel; fwd=miss; stored" }.count == 1)
        #expect(server.storedObjects().count == 1)
    }

    @Test func twoURLsOfOneGIFShareOneObject() throws {
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }, "/b.gif": { _ in .ok(gif) }])
        defer { origin.stop() }
        let server = try GifreelProcess()
        let answers = try ["/a.gif", "/b.gif"].map { try server.mp4(origin.url($0)) }
        #expect(answers[0]["etag"] == answers[1]["etag"])
        #expect(server.storedObjects().count == 1)
    }

    @Test func anUploadedGIFIsAnsweredAndHasAnAddress() throws {
        let server = try GifreelProcess()
        let answer = try server.request("POST", "/mp4", headers: ["Content-Type: image/gif"], body: gif)
        #expect(answer.status == 200)
        #expect(try MP4Boxes(answer.body).durations.count == 6)
        let address = try #require(answer["content-location"])
        #expect(address.hasPrefix("/object/") && address.hasSuffix(".mp4"))
        let stored = try server.request("GET", address)
        #expect(stored.status == 200 && stored.body == answer.body)
        #expect(stored.permits(31536000, ", immutable"))
        #expect(try server.request("POST", "/mp4", body: gif)["cache-status"] == "gifreel; hit")
        #expect(try server.request("POST", "/mp4?quality=5", body: gif).body.count < answer.body.count)
    }

    @Test func conditionsAndRangesAreHonoured() throws {
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }])
        defer { origin.stop() }
        let server = try GifreelProcess()
        let whole = try server.mp4(origin.url("/a.gif"))
        let tag = try #require(whole["etag"])
        let same = try server.mp4(origin.url("/a.gif"), headers: ["If-None-Match: \(tag)"])
        #expect(same.status == 304 && same["etag"] == tag)
        // Safari asks for two bytes before it plays.
        let start = try server.mp4(origin.url("/a.gif"), headers: ["Range: bytes=0-1"])
        #expect(start.status == 206 && start.body == Array(whole.body.prefix(2)))
        #expect(start["content-range"] == "bytes 0-1/\(whole.body.count)")
        let end = try server.mp4(origin.url("/a.gif"), headers: ["Range: bytes=-5", "If-Range: \(tag)"])
        #expect(end.status == 206 && end.body == Array(whole.body.suffix(5)))
        let beyond = try server.mp4(origin.url("/a.gif"), headers: ["Range: bytes=9999999-"])
        #expect(beyond.status == 416 && beyond["content-range"] == "bytes */\(whole.body.count)")
        let head = try server.request("HEAD", "/mp4/\(origin.url("/a.gif"))")
        #expect(head.status == 200 && head["content-length"] == "\(whole.body.count)" && head["etag"] == tag)
    }

    @Test func headOfANewURLEncodesTheRendition() throws {
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }])
        defer { origin.stop() }
        let server = try GifreelProcess()
        let head = try server.request("HEAD", "/mp4/\(origin.url("/a.gif"))")
        #expect(head.status == 200 && head["cache-status"] == "gifreel; fwd=miss; stored")
        #expect(try server.mp4(origin.url("/a.gif"))["cache-status"] == "gifreel; hit")
    }

    @Test func renditionsSurviveARestart() throws {
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }])
        defer { origin.stop() }
        let first = try GifreelProcess()
        let made = try first.mp4(origin.url("/a.gif"))
        #expect(first.terminate() == 0)
        let second = try GifreelProcess(directory: first.directory)
        let kept = try second.mp4(origin.url("/a.gif"))
        #expect(kept["cache-status"] == "gifreel; hit" && kept.body == made.body)
    }
}
