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
            settings.policy.head.cdnMaxAge = 5000
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
            #expect(try #require(renewed.maxAge()) > 86_000)
        }
    }

    /// Otherwise each cache on the way would begin anew, and the last one would have a response that is days old.
    @Test func lifetimesCountFromTheResponseOfTheOrigin() async throws {
        let time = AdvancingClock()
        let paths: [String: LoopbackOrigin.Handler] = [
            "/a.gif": { _ in .ok(Self.gif) }, "/b.gif": { _ in .ok(Self.gif, ["Cache-Control: max-age=5000"]) },
        ]
        try await WebFixture.run(paths) { settings in
            settings.cacheClock = time.clock
            settings.policy.publicURL = "https://gifs.example"
            settings.policy.head.maxAge = 3600
            settings.policy.head.cdnMaxAge = 200_000
        } _: { web async throws in
            /// Compares with the seconds left, allowing for those that have passed.
            func expect(_ path: String, _ cache: Int, _ cdn: Int, line: Int = #line) async throws {
                for format in ["mp4", "html"] {
                    let answer = try await web.request("GET", web.target(format, path))
                    for (field, expected) in [("cache-control", cache), ("cdn-cache-control", cdn)] {
                        let age = try #require(answer.maxAge(field))
                        #expect((expected - 60...expected).contains(age), "\(format) \(field) line \(line): \(age)")
                    }
                }
            }
            try await expect("/a.gif", 3600, 200_000)
            try await expect("/b.gif", 3600, 5000)
            time.pass(4000)
            // The server trusts the source for a day, and the settings permit an hour.
            try await expect("/a.gif", 3600, 196_000)
            try await expect("/b.gif", 1000, 1000)
            time.pass(80_000)
            try await expect("/a.gif", 2400, 116_000)
        }
    }

    @Test func aPlainHitHasTheLifetimeThatIsLeft() async throws {
        let time = AdvancingClock()
        try await WebFixture.run(["/a.gif": { _ in .ok(Self.gif, ["Cache-Control: max-age=5000"]) }]) { settings in
            settings.cacheClock = time.clock
        } _: { web async throws in
            let target = web.target("mp4", "/a.gif")
            _ = try await web.request("GET", target)
            for _ in 0..<3 {
                time.pass(1000)
                let hit = try await web.request("GET", target)
                let left = 5000 - Int(time.seconds)
                #expect((left - 60...left).contains(try #require(hit.maxAge())))
                #expect(hit["cache-status"] == "gifreel; hit")
                #expect(hit["cache-control"]?.hasSuffix(", stale-while-revalidate=604800, stale-if-error=604800") == true)
            }
        }
    }

    /// RFC 9111 section 5.2.2.10.
    @Test(arguments: [nil, 9000]) func aLifetimeForSharedCachesIsNotSentToClients(_ cdnMaxAge: Int?) async throws {
        let time = AdvancingClock()
        let answer: LoopbackOrigin.Handler = { _ in .ok(Self.gif, ["Cache-Control: max-age=1000, s-maxage=5000"]) }
        try await WebFixture.run(["/a.gif": answer]) { settings in
            settings.cacheClock = time.clock
            settings.policy.head.cdnMaxAge = cdnMaxAge
            settings.policy.publicURL = "https://gifs.example"
        } _: { web async throws in
            func expect(_ client: Int, _ shared: Int) async throws {
                for format in ["mp4", "html", "mp4"] {
                    let answer = try await web.request("GET", web.target(format, "/a.gif"))
                    #expect((max(0, client - 60)...client).contains(try #require(answer.maxAge())), "\(format)")
                    guard cdnMaxAge != nil else { continue }
                    let age = try #require(answer.maxAge("cdn-cache-control"))
                    #expect((shared - 60...shared).contains(age), "\(format)")
                }
            }
            try await expect(1000, 5000)
            time.pass(800)
            try await expect(200, 4200)
            time.pass(800)
            try await expect(0, 3400)
            let embed = "/oembed?url=\(PercentEncoding.encode(web.origin.url("/a.gif")))"
            #expect(try await web.request("GET", embed).json()["cache_age"] as? Int == 0)
        }
    }

    @Test(arguments: ["must-revalidate", "proxy-revalidate", "s-maxage=500", "no-cache"])
    func whatAnOriginForbidsIsForbiddenToCaches(_ directive: String) async throws {
        let answer: LoopbackOrigin.Handler = { request in
            request.headers["if-none-match"] == nil
                ? .ok(Self.gif, ["ETag: \"1\"", "Cache-Control: max-age=500, \(directive)"])
                : .tagged("\"1\"", Self.gif, request)
        }
        let time = AdvancingClock()
        try await WebFixture.run(["/a.gif": answer]) { settings in
            settings.cacheClock = time.clock
            settings.policy.head.cdnMaxAge = 9000
        } _: { web async throws in
            let target = web.target("mp4", "/a.gif")
            for status in ["gifreel; fwd=miss; stored", "gifreel; hit"] {
                let answer = try await web.request("GET", target)
                #expect(answer["cache-status"] == status)
                for field in ["cache-control", "cdn-cache-control"] {
                    #expect(answer[field]?.contains("stale") == false && answer[field]?.hasSuffix(", must-revalidate") == true)
                }
            }
            time.pass(501)
            #expect(try await web.request("GET", target)["cache-status"] == "gifreel; fwd=stale; fwd-status=304; stored")
        }
    }

    @Test func aClientMayWantStoredRenditionsOnly() async throws {
        try await WebFixture.run(["/a.gif": { _ in .ok(Self.gif) }]) { web async throws in
            let field = ["Cache-Control: only-if-cached"]
            let id = String(repeating: "0", count: 64)
            for target in [web.target("mp4", "/a.gif"), web.target("json", "/a.gif"), "/object/\(id).mp4"] {
                let answer = try await web.request("GET", target, headers: field)
                #expect(answer.status == 504 && answer.code == "not_stored" && answer["cache-control"] == "no-store")
            }
            #expect(web.origin.count("/a.gif") == 0)
            _ = try await web.request("GET", web.target("mp4", "/a.gif"))
            #expect(try await web.request("GET", web.target("mp4", "/a.gif"), headers: field).status == 200)
            #expect(try await web.request("GET", web.target("jpg", "/a.gif"), headers: field).status == 504)
            #expect(web.origin.count("/a.gif") == 1)
        }
    }

    @Test(arguments: [(0, -1), (1, -1), (2, -2), (86_400, -86_400)] as [(Int64, Int)])
    func theTimeToLiveOfAStaleResponseIsNegative(_ age: Int64, _ timeToLive: Int) {
        #expect(CacheStatusField.value(.stale(age)) == "gifreel; hit; ttl=\(timeToLive)")
    }

    @Test func theDateOfAPageChangesWithItsVideo() async throws {
        let time = AdvancingClock()
        // Behind the server's clock: `Last-Modified` is never later than `Date`.
        let clock = TimeSource(
            unixNanoseconds: { time.clock.unixNanoseconds() - 100_000_000_000 },
            monotonicNanoseconds: { time.clock.monotonicNanoseconds() })
        try await WebFixture.run(["/a.gif": { _ in .ok(Self.gif) }]) { settings in
            settings.cacheClock = clock
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
