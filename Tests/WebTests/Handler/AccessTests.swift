import Fetch
import Renditions
import SystemIO
import TestSupport
import Testing

@testable import Web

@Suite("Requests are refused before any work") struct AccessTests {
    private static let gif = GIFBuilder.animation(frames: 3)
    private static let key = "an-example-key-of-at-least-32-bytes"
    private let paths: [String: LoopbackOrigin.Handler] = ["/a.gif": { _ in .ok(gif) }, "/b.gif": { _ in .ok(gif) }]

    private func signed(_ url: String, _ options: [QueryItem] = [], expires: Int64? = nil) throws -> String {
        try #require(
            SigningKeys([Self.key]).target("mp4", options, of: try SourceURL(url), expires: expires))
    }

    @Test func aSignatureIsCheckedAlsoForHits() async throws {
        let configure: (inout WebFixture.Settings) -> Void = {
            $0.policy.signingKeys = SigningKeys([Self.key])
            $0.policy.requiresSignature = true
        }
        try await WebFixture.run(paths, configure) { web async throws in
            let target = try signed(web.origin.url("/a.gif"))
            for _ in 0..<2 { #expect(try await web.request("GET", target).status == 200) }
            for wrong in [web.target("mp4", "/a.gif"), target.replacing("sig=", with: "sig=A"), target + "?x=1"] {
                let response = try await web.request("GET", wrong)
                #expect(response.status == 403 && response.code == "bad_signature", "\(wrong)")
                #expect(response["cache-control"] == "no-store")
            }
            let late = try await web.request("GET", try signed(web.origin.url("/a.gif"), expires: 1_000))
            #expect(late.status == 403 && late.code == "expired_signature")
            #expect(web.origin.count("/a.gif") == 1)
        }
    }

    @Test func noCacheMayStoreAResponseForLongerThanItsSignature() async throws {
        try await WebFixture.run(paths, { $0.policy.signingKeys = SigningKeys([Self.key]) }) { web async throws in
            let soon = Int64(currentSeconds() + 100)
            let target = try signed(web.origin.url("/a.gif"), expires: soon)
            for _ in 0..<2 {
                let field = try #require(try await web.request("GET", target)["cache-control"])
                let seconds = try #require(Int(field.dropFirst("public, max-age=".count)))
                #expect((1...100).contains(seconds), "\(field)")
            }
        }
    }

    @Test func noCacheMayStoreAnErrorForLongerThanItsRequestIsValid() async throws {
        try await WebFixture.run(paths) { web async throws in
            for format in ["mp4", "json", "html"] {
                #expect(
                    try await web.request("GET", web.target(format, "/none.gif"))["cache-control"] == "public, max-age=60")
                for accept in ["*/*", "text/html"] {
                    let target = web.target("\(format),expires=\(currentSeconds() + 30)", "/none.gif")
                    let response = try await web.request("GET", target, headers: ["Accept: \(accept)"])
                    let field = try #require(response["cache-control"])
                    let seconds = try #require(Int(field.trimmingPrefix("public, max-age=")), "\(field)")
                    #expect(response.status == 404 && (0...30).contains(seconds), "\(target)")
                }
            }
        }
    }

    @Test func aMountThatRequiresSignaturesIsNotOpenToTheURLsOfItsSources() async throws {
        let origin = try LoopbackOrigin(["/m/a.gif": { _ in .ok(Self.gif) }, "/o/a.gif": { _ in .ok(Self.gif) }])
        defer { origin.stop() }
        try await WebFixture.run([:]) { settings in
            settings.policy.signingKeys = SigningKeys([Self.key])
            settings.policy.mounts["open"] = Mount(origin: try SourceURL(origin.url("/o/")))
            var mount = Mount(origin: try SourceURL(origin.url("/")), allow: ["m/"])
            mount.rule.requiresSignature = true
            settings.policy.mounts["members"] = mount
        } _: { web async throws in
            for target in ["/members/m/a.mp4", "/mp4/\(origin.url("/m/a.gif"))", "/html/\(origin.url("/m/a.gif"))"] {
                let refused = try await web.request("GET", target)
                #expect(refused.status == 403 && refused.code == "bad_signature", "\(target)")
            }
            #expect(try await web.request("GET", try signed(origin.url("/m/a.gif"))).status == 200)
            #expect(try await web.request("GET", "/mp4/\(origin.url("/o/a.gif"))").status == 200)
            #expect(try await web.request("GET", "/open/a.mp4").status == 200)
        }
    }

    /// Origins resolve them to `/m/priv/a.gif`.
    private static let spellings = ["/m/priv/a.gif", "/m//priv/a.gif", "/m/x/..%2Fpriv/a.gif", "/m%2Fpriv/a.gif"]

    @Test func aMountThatRequiresSignaturesIsNotOpenToOtherSpellingsOrMounts() async throws {
        let origin = try LoopbackOrigin(["/m/priv/a.gif": { _ in .ok(Self.gif) }, "/m/a.gif": { _ in .ok(Self.gif) }])
        defer { origin.stop() }
        try await WebFixture.run([:]) { settings in
            settings.policy.signingKeys = SigningKeys([Self.key])
            var mount = Mount(origin: try SourceURL(origin.url("/m/priv/")))
            mount.rule.requiresSignature = true
            settings.policy.mounts["members"] = mount
            mount.rule.requiresSignature = false
            settings.policy.mounts["guests"] = mount
            settings.policy.mounts["all"] = Mount(origin: try SourceURL(origin.url("/m/")))
        } _: { web async throws in
            for target in Self.spellings.map({ "/mp4/\(origin.url($0))" }) + ["/members/a.mp4", "/all/priv/a.mp4"] {
                let refused = try await web.request("GET", target)
                #expect(refused.status == 403 && refused.code == "bad_signature", "\(target)")
            }
            #expect(origin.requests.isEmpty)
            // A mount's own rule precedes.
            for target in ["/guests/a.mp4", "/all/a.mp4", "/mp4/\(origin.url("/m/a.gif"))"] {
                #expect(try await web.request("GET", target).status == 200, "\(target)")
            }
        }
    }

    @Test func theSourcesOfAPrivateMountHaveNoOtherSpelling() async throws {
        let origin = try LoopbackOrigin(["/m/priv/a.gif": { _ in .ok(Self.gif) }, "/m/a.gif": { _ in .ok(Self.gif) }])
        defer { origin.stop() }
        try await WebFixture.run([:]) { settings in
            var mount = Mount(origin: try SourceURL(origin.url("/m/priv/")))
            mount.rule.fields = ["X-Key: 1"]
            settings.policy.mounts["members"] = mount
        } _: { web async throws in
            for spelling in Self.spellings {
                let refused = try await web.request("GET", "/mp4/\(origin.url(spelling))")
                #expect(refused.status == 403 && refused.code == "source_not_allowed", "\(spelling)")
            }
            #expect(origin.requests.isEmpty)
            for target in ["/members/a.mp4", "/mp4/\(origin.url("/m/a.gif"))"] {
                #expect(try await web.request("GET", target).status == 200, "\(target)")
            }
        }
    }

    @Test func aSourceThatIsNotAllowedIsRefusedAlsoIfItIsCached() async throws {
        try await WebFixture.run(paths, { $0.allow = [try #require(SourcePattern("example.com"))] }) { web async throws in
            let response = try await web.request("GET", web.target("mp4", "/a.gif"))
            #expect(response.status == 403 && response.code == "source_not_allowed")
            #expect(response.detail == "Sources of this host or path may not be fetched.")
            // A redirect to the source without its parameters would lead to the same refusal.
            let tracked = try await web.request("GET", web.target("mp4", "/a.gif") + "?fbclid=1")
            #expect(tracked.status == 403 && tracked.code == "source_not_allowed")
            #expect(web.origin.requests.isEmpty)
        }
    }

    @Test func aRequestOfTheServicesOwnFetchIsRefusedUnlessItIsAHit() async throws {
        try await WebFixture.run(paths) { web async throws in
            let loop = ["CDN-Loop: other, gifreel"]
            let response = try await web.request("GET", web.target("mp4", "/a.gif"), headers: loop)
            #expect(response.status == 403 && response.detail == "The source is this service itself.")
            #expect(try await web.request("POST", "/mp4", headers: loop, body: Self.gif).status == 403)
            for url in [web.origin.url("/a.gif"), "http://127.0.0.1\(web.target("html", "/a.gif"))"] {
                let page = try await web.request("GET", "/oembed?url=\(PercentEncoding.encode(url))", headers: loop)
                #expect(page.status == 403 && page.code == "source_not_allowed", "\(url)")
            }
            #expect(web.origin.requests.isEmpty)
            for _ in 0..<2 { #expect(try await web.request("GET", web.target("mp4", "/a.gif")).status == 200) }
            #expect(try await web.request("GET", web.target("mp4", "/a.gif"), headers: loop).status == 200)
            #expect(web.origin.requests.allSatisfy { $0.headers["cdn-loop"] == "gifreel" })
        }
    }

    @Test func theRateLimitCountsMissesOnly() async throws {
        try await WebFixture.run(paths, { $0.policy.rateLimit = RateLimit(perMinute: 1, burst: 1) }) { web async throws in
            for _ in 0..<3 { #expect(try await web.request("GET", web.target("mp4", "/a.gif")).status == 200) }
            for (method, target) in [
                ("GET", web.target("mp4", "/b.gif")), ("POST", "/png"), ("GET", web.target("html", "/b.gif")),
            ] {
                let response = try await web.request(method, target, body: method == "POST" ? Self.gif : [])
                #expect(response.status == 429 && response.code == "rate_limited", "\(target)")
                let seconds = try #require(response["retry-after"].flatMap { Int($0) })
                #expect((1...60).contains(seconds) && response["cache-control"] == "no-store")
            }
            #expect(try await web.request("GET", web.target("mp4", "/a.gif")).status == 200)
            #expect(web.origin.count("/b.gif") == 0)
        }
    }

    @Test func aGIFInPlaceOfAStoredVideoThatIsLargerCountsAsAMiss() async throws {
        let origin = try LoopbackOrigin(["/tiny.gif": { _ in .ok(GIFBuilder.animation(frames: 1, width: 2, height: 2)) }])
        defer { origin.stop() }
        try await WebFixture.run([:]) { settings in
            var mount = Mount(origin: try SourceURL(origin.url("/")))
            mount.negotiates = true
            settings.policy.mounts = ["media": mount]
            settings.policy.rateLimit = RateLimit(perMinute: 1, burst: 1)
        } _: { web async throws in
            #expect(try await web.request("GET", "/media/tiny.mp4?bframes=0").status == 200)
            // The client may cause no further miss, so it gets the video.
            let answer = try await web.request("GET", "/media/tiny.gif", headers: ["Accept: video/mp4"])
            #expect(answer.status == 200 && answer["content-type"] == "video/mp4")
            #expect(origin.count("/tiny.gif") == 1)
        }
    }

    @Test func anErrorOfAPageIsAPageIfTheClientPrefersHTML() async throws {
        try await WebFixture.run(paths) { web async throws in
            for target in [web.target("html", "/none.gif"), web.target("html,quality=0", "/a.gif"), "/html/nonsense"] {
                let page = try await web.request("GET", target, headers: ["Accept: text/html,*/*;q=0.8"])
                #expect(page["content-type"] == "text/html; charset=utf-8" && page["vary"] == "Accept", "\(target)")
                #expect(page.text.contains("<h1>This video is not available</h1>") && page.text.contains("Gifreel 1.2.3"))
                let document = try await web.request("GET", target, headers: ["Accept: */*"])
                #expect(document["content-type"] == "application/problem+json" && document["vary"] == "Accept", "\(target)")
                #expect(document.status == page.status && document["cache-control"] == page["cache-control"])
                let detail = try #require(document.detail)
                #expect(page.text.contains(HTMLText.escape(detail)))
            }
            let other = try await web.request("GET", web.target("mp4", "/none.gif"), headers: ["Accept: text/html"])
            #expect(other["content-type"] == "application/problem+json" && other["vary"] == nil)
        }
    }

    @Test func aMethodThatARouteLacksIsRefusedWithThoseItHas() async throws {
        try await WebFixture.run(paths, { $0.policy.adminToken = "secret" }) { web async throws in
            for (method, target, allowed) in [
                ("DELETE", web.target("mp4", "/a.gif"), "GET, HEAD, OPTIONS, PURGE"),
                ("PUT", "/prewarm", "GET, HEAD, POST, OPTIONS"),
                ("POST", "/cache", "GET, HEAD, DELETE, OPTIONS"), ("PURGE", "/", "GET, HEAD, OPTIONS"),
                ("POST", "/healthz", "GET, HEAD, OPTIONS"), ("POST", web.target("mp4", "/a.gif"), "GET, HEAD, OPTIONS, PURGE"),
                // Without a source, the target has a meaning with a body only.
                ("PUT", "/mp4", "POST, OPTIONS"), ("PATCH", "/jpg?width=20", "POST, OPTIONS"),
                ("DELETE", "/mp4", "POST, OPTIONS"), ("PURGE", "/mp4", "POST, OPTIONS"),
            ] {
                let response = try await web.request(method, target)
                #expect(response.status == 405 && response["allow"] == allowed, "\(method) \(target)")
                #expect(
                    response.detail
                        == "\(method) is not allowed for this route. The allowed methods are \(allowed).", "\(target)")
            }
            for (method, target, status) in [
                ("GET", "/mp4", 400), ("HEAD", "/mp4", 400), ("PUT", "/mp4?width=1", 400), ("PUT", "/nothing", 404),
            ] {
                #expect(try await web.request(method, target).status == status, "\(method) \(target)")
            }
        }
    }

    /// Without the field, caches such as Varnish store a response for two minutes.
    @Test(arguments: ["/healthz", "/readyz"]) func noCacheAnswersProbes(_ target: String) async throws {
        try await WebFixture.run([:]) { web async throws in
            let response = try await web.request("GET", target)
            #expect(response.text == "ok\n" && response["content-type"] == "text/plain")
            #expect(response["cache-control"] == "no-store" && response.fieldCount("cache-control") == 1)
        }
    }

    @Test func readinessFollowsTheStateOfTheServer() async throws {
        try await WebFixture.run([:]) { settings in
            settings.isReady = false
        } _: { web async throws in
            func expectUnready(_ code: String) async throws {
                let response = try await web.request("GET", "/readyz")
                #expect(response.status == 503 && response.code == code && response["retry-after"] != nil)
                #expect(!web.handler.isReady)
                #expect(try await web.request("GET", "/healthz").text == "ok\n")
            }
            try await expectUnready("overloaded")
            web.handler.becomeReady()
            #expect(web.handler.isReady)
            #expect(try await web.request("GET", "/readyz").text == "ok\n")
            web.handler.drain()
            try await expectUnready("draining")
            // What was waited for at the start comes too late.
            web.handler.becomeReady()
            try await expectUnready("draining")
        }
    }
}
