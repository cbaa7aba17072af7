import TestSupport
import Testing

@Suite("Cache directives of origins decide on freshness", .timeLimit(.minutes(10))) struct OriginCachingTests {
    private let gif = GIFBuilder.animation(frames: 6, width: 33, height: 21, delay: 7)

    private func origin(_ cacheControl: String...) throws -> LoopbackOrigin {
        let (gif, fields) = (gif, cacheControl)
        return try LoopbackOrigin(["/a.gif": { _ in .ok(gif, fields) }])
    }

    @Test(arguments: ["Cache-Control: no-store", "Cache-Control: private, max-age=60"])
    func renditionsThatMayNotBeStoredAreAnsweredAndDropped(_ field: String) throws {
        let origin = try origin(field)
        defer { origin.stop() }
        let server = try GifreelProcess()
        for count in 1...2 {
            let answer = try server.mp4(origin.url("/a.gif"))
            #expect(answer.status == 200)
            #expect(try MP4Boxes(answer.body).durations.count == 6)
            #expect(answer["cache-control"] == "no-store")
            #expect(answer["cache-status"] == "gifreel; fwd=miss; detail=origin-forbids")
            #expect(origin.count("/a.gif") == count)
        }
        #expect(server.storedObjects().isEmpty)
        // The same GIF from elsewhere is stored; that does not lead the forbidden URL to it.
        let (gif, stored) = (gif, try LoopbackOrigin())
        defer { stored.stop() }
        stored.on("/b.gif", .ok(gif))
        let allowed = try server.mp4(stored.url("/b.gif"))
        #expect(allowed["cache-status"] == "gifreel; fwd=miss; stored")
        let forbidden = try server.mp4(origin.url("/a.gif"))
        #expect(forbidden["cache-control"] == "no-store" && forbidden.body == allowed.body)
        #expect(try server.mp4(stored.url("/b.gif"))["cache-control"]?.hasPrefix("public") == true)
    }

    @Test func theConfigurationMayOverruleTheOrigin() throws {
        let origin = try origin("Cache-Control: no-store")
        defer { origin.stop() }
        let server = try GifreelProcess(["cache.obey_origin=false"])
        #expect(try server.mp4(origin.url("/a.gif"))["cache-status"] == "gifreel; fwd=miss; stored")
        #expect(try server.mp4(origin.url("/a.gif"))["cache-status"] == "gifreel; hit")
    }

    @Test func clientsAreNotToldToKeepItLongerThanTheOriginAllows() throws {
        let origin = try origin("Cache-Control: max-age=120")
        defer { origin.stop() }
        let server = try GifreelProcess()
        let rest = ", stale-while-revalidate=604800, stale-if-error=604800"
        #expect(try server.mp4(origin.url("/a.gif")).permits(120, rest))
        let hit = try server.mp4(origin.url("/a.gif"))
        #expect(hit.permits(120, rest) && hit["cache-status"] == "gifreel; hit")
    }

    @Test(arguments: [["Cache-Control: max-age=0"], ["Expires: 0"], ["Cache-Control: max-age=100", "Age: 100"]])
    func renditionsThatAreStaleAtOnceAreRevalidated(_ fields: [String]) throws {
        let gif = gif
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif, fields) }])
        defer { origin.stop() }
        let server = try GifreelProcess(["cache.min_fresh_for=0s"])
        _ = try server.mp4(origin.url("/a.gif"))
        #expect(try server.mp4(origin.url("/a.gif"))["cache-status"]?.hasPrefix("gifreel; hit; ttl=-") == true)
        try origin.waitForRequests(2, for: "/a.gif")
    }

    @Test(arguments: ["no-cache", "max-age=0, must-revalidate", "s-maxage=0"])
    func renditionsThatMustNotBeStaleAreRevalidatedFirst(_ directives: String) throws {
        let gif = gif
        let origin = try LoopbackOrigin([
            "/a.gif": { request in
                request.headers["if-none-match"] == nil
                    ? .ok(gif, ["Cache-Control: \(directives)", "ETag: \"1\""]) : .tagged("\"1\"", gif, request)
            }
        ])
        defer { origin.stop() }
        let server = try GifreelProcess(["cache.min_fresh_for=0s"])
        #expect(try server.mp4(origin.url("/a.gif"))["cache-control"] == "public, max-age=0, must-revalidate")
        let renewed = try server.mp4(origin.url("/a.gif"))
        #expect(renewed["cache-status"] == "gifreel; fwd=stale; fwd-status=304; stored")
        origin.on("/a.gif", .status(500))
        #expect(try server.mp4(origin.url("/a.gif")).status == 502)
    }

    @Test func renewalIsToldFromAMiss() throws {
        let gif = gif
        let origin = try LoopbackOrigin(["/a.gif": { .tagged("\"1\"", gif, $0) }])
        defer { origin.stop() }
        let server = try GifreelProcess(["cache.fresh_for=0s", "cache.stale_for=0s"])
        _ = try server.mp4(origin.url("/a.gif"))
        let renewed = try server.mp4(origin.url("/a.gif"))
        #expect(renewed.status == 200 && renewed["cache-status"] == "gifreel; fwd=stale; fwd-status=304; stored")
    }

    @Test func theEntityTagIsOneOfBytes() throws {
        let origin = try origin("Cache-Control: max-age=120")
        defer { origin.stop() }
        let server = try GifreelProcess()
        let answer = try server.mp4(origin.url("/a.gif"))
        #expect(answer["etag"] == "\"\(sha256(answer.body).prefix(32))\"")
    }
}
