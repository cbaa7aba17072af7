import Media
import TestSupport
import Testing

@testable import Renditions
@testable import Web

@Suite("flashes.limit decides about animations that flash", .timeLimit(.minutes(10)))
struct FlashLimitTests {
    /// Black and white in turn: five flashes in a second, or a half of one.
    private static func gif(delay: Int) -> [UInt8] {
        var builder = GIFBuilder(width: 160, height: 160, palette: [(0, 0, 0), (255, 255, 255)])
        builder.addLoop(0)
        for color in 0..<2 {
            builder.add(GIFBuilder.Frame(width: 160, height: 160, color: UInt8(color))) { $0.delay = delay }
        }
        return builder.finish()
    }

    private func run(_ limit: FlashLimit, _ body: (WebFixture) async throws -> Void) async throws {
        let (flashing, calm) = (Self.gif(delay: 10), Self.gif(delay: 100))
        try await WebFixture.run(
            ["/a.gif": { _ in .ok(flashing) }, "/b.gif": { _ in .ok(calm) }],
            {
                $0.flashes = limit
                $0.policy.adminToken = "secret"
            }, body)
    }

    @Test(arguments: ["mp4", "webm", "gif", "awebp", "auto"])
    func whatMovesIsRefusedAndRemembered(_ format: String) async throws {
        try await run(.refuse) { web async throws in
            let first = try await web.request("GET", web.target(format, "/a.gif"))
            #expect(first.status == 422 && first.code == "flashing")
            #expect(first.detail == "The animation flashes 5 times within a second. This server permits 3.")
            let again = try await web.request("GET", web.target(format, "/a.gif"))
            #expect(again.status == 422 && again["cache-status"] == "gifreel; hit; detail=negative")
            #expect(web.origin.count("/a.gif") == 1)
            #expect(try await web.request("GET", web.target(format, "/b.gif")).status == 200)
        }
    }

    /// Three flashes within a second are permitted, four are not.
    @Test(arguments: [(17, 200), (13, 422)])
    func theLimitIsThatOfTheCriterion(_ delay: Int, _ status: Int) async throws {
        try await run(.refuse) { web async throws in
            #expect(try await web.request("POST", "/mp4", body: Self.gif(delay: delay)).status == status)
        }
    }

    @Test func stillsAndFactsAreNotRefused() async throws {
        try await run(.refuse) { web async throws in
            #expect(try await web.request("GET", web.target("mp4", "/a.gif")).status == 422)
            #expect(try await web.request("GET", web.target("jpg", "/a.gif")).status == 200)
            let facts = try await web.request("GET", web.target("json,facts=flashes", "/a.gif"))
            #expect((try facts.json()["flashes"] as? [String: Any])?["general"] as? Int == 5)
            // They are those that the limit has counted.
            #expect(facts["cache-status"] == "gifreel; hit")
        }
    }

    /// The source itself has no options, nor has its still.
    @Test(
        arguments: [
            ("mp4,width=80", "*/*", "webp,width=80"), ("gif,width=80", "image/gif", "webp,width=80"),
            ("auto,width=80", "video/mp4", "webp,width=80"), ("auto,width=80", "image/gif", "webp"),
        ])
    func aStillIsAnsweredInItsPlace(_ format: String, _ accept: String, _ same: String) async throws {
        try await run(.still) { web async throws in
            for _ in 0..<2 {
                let still = try await web.request("GET", web.target(format, "/a.gif"), headers: ["Accept: \(accept)"])
                #expect(still.status == 200 && still["content-type"] == "image/webp")
            }
            #expect(try await web.request("GET", web.target(same, "/a.gif"))["cache-status"] == "gifreel; hit")
            #expect(web.origin.count("/a.gif") == 1)
            #expect(try await web.request("GET", web.target("mp4", "/b.gif"))["content-type"] == "video/mp4")
        }
    }

    @Test func anUploadGetsAStillOrARefusal() async throws {
        try await run(.still) { web async throws in
            let still = try await web.request("POST", "/mp4", body: Self.gif(delay: 10))
            #expect(still.status == 200 && still["content-type"] == "image/webp")
        }
        try await run(.refuse) { web async throws in
            #expect(try await web.request("POST", "/mp4", body: Self.gif(delay: 10)).code == "flashing")
        }
    }

    @Test func aWarningIsLoggedAndCounted() async throws {
        try await run(.warn) { web async throws in
            #expect(try await web.request("GET", web.target("mp4", "/a.gif"))["content-type"] == "video/mp4")
            #expect(try await web.request("GET", web.target("mp4", "/b.gif")).status == 200)
            let metrics = try await web.request("GET", "/metrics", headers: ["Authorization: Bearer secret"]).text
            #expect(metrics.contains("gifreel_flashing_sources_total 1"))
            #expect(web.log.all.contains { $0.metadata["general"] == "5" && $0.metadata["source_host"] == "127.0.0.1" })
        }
    }

    @Test func withoutALimitNothingIsCounted() async throws {
        try await run(.off) { web async throws in
            #expect(try await web.request("GET", web.target("mp4", "/a.gif"))["content-type"] == "video/mp4")
            #expect(try await web.request("GET", web.target("json,facts=flashes", "/a.gif"))["cache-status"] != "gifreel; hit")
        }
    }

    @Test(arguments: [FlashLimit.refuse, .still], ["on_error", "on_miss"])
    func aPageShowsAPosterOfWhatFlashes(_ limit: FlashLimit, _ option: String) async throws {
        try await run(limit) { web async throws in
            let target = web.target("html,\(option)=original", "/a.gif")
            // Nothing that moves is shown before it is examined, either.
            let first = try await web.request("GET", target)
            #expect(first.status == 200 && !first.text.contains("src=\"\(web.origin.url("/"))"), "\(first.text)")
            _ = try await web.request("GET", web.target("mp4", "/a.gif"))
            let page = try await web.request("GET", target)
            #expect(page.text.contains("<img src=\"/jpg/\(web.origin.url("/a.gif"))\""), "\(page.text)")
            #expect(!page.text.contains("<video") && page["last-modified"] == nil)
            #expect(page["cache-control"] == "no-cache")
        }
    }

    @Test func aPageShowsTheOriginalThatDoesNotFlashOrMay() async throws {
        for limit in [FlashLimit.off, .warn] {
            try await run(limit) { web async throws in
                let page = try await web.request("GET", web.target("html,on_miss=original", "/a.gif"))
                #expect(page.text.contains("<img src=\"\(web.origin.url("/a.gif"))\""), "\(limit)")
            }
        }
    }
}
