import Fetch
import SystemIO
import Renditions
import TestSupport
import Testing

@testable import Web

@Suite("Responses that are stale or change say so to caches", .timeLimit(.minutes(10))) struct StaleResponseTests {
    private static let gif = GIFBuilder.animation(frames: 4, width: 40, height: 30)

    @Test func aStaleResponseMayBeStoredForAFewSecondsOnly() async throws {
        let time = AdvancingClock()
        let gate = try LoopbackGate()
        // The origin holds each renewal back.
        let answer: LoopbackOrigin.Handler = { _ in
            time.seconds > 0 ? LoopbackAnswer.ok(Self.gif).after(gate) : .ok(Self.gif)
        }
        try await WebFixture.run(["/a.gif": answer]) { settings in
            settings.cacheClock = time.clock
            settings.policy.cdnMaxAge = 5000
            settings.policy.publicURL = "https://gifs.example"
        } _: { web async throws in
            defer { gate.open() }
            let targets = ["mp4", "json", "html"].map { web.target($0, "/a.gif") }
            for target in targets {
                let fresh = try await web.request("GET", target)
                #expect(fresh["cache-control"]?.hasPrefix("public, max-age=5,") == false, "\(target)")
            }
            time.pass(86_400 + 10)
            for target in targets + targets {
                let stale = try await web.request("GET", target)
                #expect(stale["cache-status"]?.hasPrefix("gifreel; hit; ttl=-") == true, "\(target)")
                #expect(
                    stale["cache-control"] == "public, max-age=5, stale-while-revalidate=604800, stale-if-error=604800",
                    "\(target)")
                #expect(stale["cdn-cache-control"] == stale["cache-control"], "\(target)")
            }
            let embed = "/oembed?url=\(PercentEncoding.encode(web.origin.url("/a.gif")))"
            #expect(try await web.request("GET", embed).json()["cache_age"] as? Int == 5)
            gate.open()
            var renewed = try await web.request("GET", targets[0])
            try await waitUntil("the renewal") {
                renewed = try await web.request("GET", targets[0])
                return renewed["cache-status"] == "gifreel; hit"
            }
            #expect(renewed["cache-control"]?.hasPrefix("public, max-age=86400,") == true)
        }
    }

    @Test(arguments: [(0, -1), (1, -1), (2, -2), (86_400, -86_400)] as [(Int64, Int)])
    func theTimeToLiveOfAStaleResponseIsNegative(_ age: Int64, _ timeToLive: Int) {
        #expect(CacheStatusField.value(.stale(age)) == "gifreel; hit; ttl=\(timeToLive)")
    }

    @Test func theDateOfAPageChangesWithItsVideo() async throws {
        let time = AdvancingClock()
        try await WebFixture.run(["/a.gif": { _ in .ok(Self.gif) }]) { settings in
            settings.cacheClock = time.clock
        } _: { web async throws in
            let target = web.target("html", "/a.gif")
            let first = try #require(try await web.request("GET", target)["last-modified"])
            time.pass(100)
            let video = try await web.request("GET", web.target("mp4", "/a.gif"))
            let page = try await web.request("GET", target)
            #expect(page["last-modified"] != first && page["last-modified"] == video["last-modified"])
            for (date, status) in [(first, 200), (page["last-modified"] ?? "", 304)] {
                let answer = try await web.request("GET", target, headers: ["If-Modified-Since: \(date)"])
                #expect(answer.status == status, "\(date)")
            }
        }
    }
}
