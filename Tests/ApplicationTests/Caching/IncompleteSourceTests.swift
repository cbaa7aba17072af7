import TestSupport
import Testing

@Suite("Responses tell that a source breaks off", .timeLimit(.minutes(10))) struct IncompleteSourceTests {
    private let gif = GIFBuilder.animation(frames: 6, width: 33, height: 21, delay: 7)
    private var half: [UInt8] { Array(gif.prefix(gif.count / 2)) }

    private func origin() throws -> LoopbackOrigin {
        let origin = try LoopbackOrigin()
        origin.on("/half.gif", .ok(half, ["Cache-Control: max-age=5000"]))
        origin.on("/whole.gif", .ok(gif, ["Cache-Control: max-age=5000"]))
        return origin
    }

    @Test(arguments: ["mp4", "mp4,codec=av1", "webm", "avif", "jpg", "png,frame=auto", "webp,frame=9"])
    func renditionsOfSuchASourceAreTrustedForAShortTime(_ rendition: String) throws {
        let origin = try origin()
        defer { origin.stop() }
        let server = try GifreelProcess(["cache.cdn_max_age=30d"])
        for status in ["gifreel; fwd=miss; stored; detail=incomplete-source", "gifreel; hit; detail=incomplete-source"] {
            let answer = try server.request("GET", "/\(rendition)/\(origin.url("/half.gif"))")
            #expect(answer.status == 200 && answer["cache-status"] == status)
            #expect(answer["cache-control"] == "public, max-age=600" && answer["cdn-cache-control"] == "public, max-age=600")
        }
        let answer = try server.request("GET", "/\(rendition)/\(origin.url("/whole.gif"))")
        #expect(answer["cache-status"] == "gifreel; fwd=miss; stored")
        #expect(answer["cache-control"]?.hasPrefix("public, max-age=5000, stale-while-revalidate=") == true)
    }

    @Test func factsSayWhetherTheSourceIsComplete() throws {
        let origin = try origin()
        defer { origin.stop() }
        let server = try GifreelProcess()
        let broken = try server.request("GET", "/json/\(origin.url("/half.gif"))")
        #expect(broken.status == 200 && broken.text.contains("\"complete\":false"))
        #expect(broken["cache-status"] == "gifreel; fwd=miss; stored; detail=incomplete-source")
        let whole = try server.request("GET", "/json/\(origin.url("/whole.gif"))")
        #expect(whole.text.contains("\"complete\":true") && whole["cache-status"] == "gifreel; fwd=miss; stored")
    }

    @Test func anObjectStaysImmutable() throws {
        let server = try GifreelProcess()
        let answer = try server.request("POST", "/mp4", body: half)
        #expect(answer.status == 200 && answer["cache-status"] == "gifreel; fwd=miss; stored; detail=incomplete-source")
        let path = try #require(answer["content-location"])
        let object = try server.request("GET", path)
        #expect(object["cache-status"] == "gifreel; hit; detail=incomplete-source")
        #expect(object["cache-control"] == "public, max-age=31536000, immutable")
    }

    @Test func aMissingEndMarkerIsNotMissed() throws {
        let origin = try origin()
        defer { origin.stop() }
        origin.on("/unmarked.gif", .ok(Array(gif.dropLast())))
        let server = try GifreelProcess()
        let answer = try server.mp4(origin.url("/unmarked.gif"))
        #expect(answer["cache-status"] == "gifreel; fwd=miss; stored")
    }
}
