import TestSupport
import Testing

@Suite("Failures are remembered for a limited time", .timeLimit(.minutes(10))) struct NegativeAnswerTests {
    private let authorization = ["Authorization: Bearer secret"]

    @Test func aFailingSourceIsAskedOnceHoweverManyAsk() throws {
        let origin = try LoopbackOrigin(["/a.gif": { _ in .status(500) }])
        defer { origin.stop() }
        let server = try GifreelProcess()
        let target = "/mp4/\(origin.url("/a.gif"))"
        let began = ContinuousClock.now
        let first = try server.request("GET", target)
        #expect(first.status == 502 && first["cache-status"] == "gifreel; fwd=miss" && first["retry-after"] == "8")
        var client = try RawHTTPClient(port: server.port)
        for _ in 0..<200 {
            let answer = try client.request("GET", target)
            #expect(answer.status == 502 && answer.body == first.body)
            // A failure is remembered for five seconds at least.
            guard began.duration(to: .now) < .seconds(5) else { break }
            #expect(Set(answer.headers.keys) == Set(first.headers.keys))
            #expect(answer["cache-status"] == "gifreel; hit; detail=negative")
            let seconds = Int(answer["retry-after"] ?? "") ?? 0
            #expect((1...8).contains(seconds))
        }
        // Other renditions of the source need not ask either.
        #expect(try server.request("GET", "/mp4,quality=5/\(origin.url("/a.gif"))").status == 502)
        #expect((1...1 + Int(began.duration(to: .now) / .seconds(5))).contains(origin.count("/a.gif")))
    }

    @Test func whatASourceLacksIsRememberedAndPurged() throws {
        let gif = GIFBuilder.animation()
        let origin = try LoopbackOrigin(["/page.gif": { _ in .ok(Array("<!doctype html><html></html>".utf8)) }])
        defer { origin.stop() }
        origin.on("/half.gif", .ok(Array(gif.prefix(60))))
        let server = try GifreelProcess(["admin.token=secret"])
        let cases = [("/missing.gif", 404), ("/page.gif", 415), ("/half.gif", 422)]
        for (path, status) in cases {
            let target = "/mp4/\(origin.url(path))"
            for _ in 0..<3 { #expect(try server.request("GET", target).status == status) }
            #expect(origin.count(path) == 1, "\(path)")
        }
        // The pages are repaired, and the operator purges by PURGE, by URL or by prefix.
        for (path, _) in cases { origin.on(path, .ok(gif)) }
        let purges = [
            ("PURGE", "/mp4/\(origin.url("/missing.gif"))"), ("DELETE", "/cache?url=\(origin.url("/page.gif"))"),
            ("DELETE", "/cache?prefix=\(origin.url("/half"))"),
        ]
        for (method, target) in purges { #expect(try server.request(method, target, headers: authorization).status == 200) }
        for (path, _) in cases { #expect(try server.mp4(origin.url(path)).status == 200, "\(path)") }
    }

    @Test func anOriginsWishToBeLeftAloneIsHonoured() throws {
        let origin = try LoopbackOrigin(["/a.gif": { _ in .status(503, ["Retry-After: 120"]) }])
        defer { origin.stop() }
        let server = try GifreelProcess()
        #expect(try server.mp4(origin.url("/a.gif"))["retry-after"] == "120")
        let seconds = Int(try server.mp4(origin.url("/a.gif"))["retry-after"] ?? "") ?? 0
        #expect((60...120).contains(seconds) && origin.count("/a.gif") == 1)
    }

    @Test func refusalsOfTheServiceAreNotRemembered() throws {
        let server = try GifreelProcess(["sources.allow=example.com"])
        let answer = try server.mp4("http://127.0.0.1:1/a.gif")
        #expect(answer.status == 403)
        #expect(try server.mp4("http://127.0.0.1:1/a.gif")["cache-status"] == nil)
    }

    @Test func aSourceThatIsGoneIsNotAnsweredForAnyMore() throws {
        let gif = GIFBuilder.animation()
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }])
        defer { origin.stop() }
        let server = try GifreelProcess(["cache.fresh_for=0s"])
        #expect(try server.mp4(origin.url("/a.gif")).status == 200)
        origin.on("/a.gif", .status(410))
        #expect(try server.mp4(origin.url("/a.gif")).status == 200)
        try blockUntil("410") { try server.mp4(origin.url("/a.gif")).status == 410 }
        #expect(origin.count("/a.gif") == 2)
        try blockUntil("an empty cache") { server.storedObjects().isEmpty }
    }

    @Test func anOriginThatFailsLeavesTheStaleAnswer() throws {
        let gif = GIFBuilder.animation()
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }])
        defer { origin.stop() }
        let server = try GifreelProcess(["cache.fresh_for=0s"])
        let first = try server.mp4(origin.url("/a.gif"))
        let began = ContinuousClock.now
        origin.on("/a.gif", .status(500))
        for _ in 0..<50 { #expect(try server.mp4(origin.url("/a.gif")).body == first.body) }
        try origin.waitForRequests(2, for: "/a.gif")
        for _ in 0..<50 { #expect(try server.mp4(origin.url("/a.gif")).status == 200) }
        #expect((2...2 + Int(began.duration(to: .now) / .seconds(5))).contains(origin.count("/a.gif")))
    }
}
