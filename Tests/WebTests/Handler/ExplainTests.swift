import Fetch
import HTTP
import SystemIO
import TestSupport
import Testing

@testable import Web

@Suite("GET /explain says why a source is or is not converted") struct ExplainTests {
    private static let gif = GIFBuilder.animation(frames: 3)
    private static let token = ["Authorization: Bearer secret"]
    private let paths: [String: LoopbackOrigin.Handler] = [
        "/a.gif": { _ in .ok(gif) }, "/page.gif": { _ in .ok(Array("<!doctype html>".utf8)) },
        "/half.gif": { _ in .ok(Array(gif.prefix(60))) },
    ]

    private func explain(
        _ web: WebFixture, _ text: String, fetches: Bool = false
    ) async throws -> [String: Any] {
        let target = "/explain?url=\(PercentEncoding.encode(text))\(fetches ? "&fetch=true" : "")"
        let response = try await web.request("GET", target, headers: Self.token)
        #expect(response.status == 200 && response["cache-control"] == "no-store", "\(response.text)")
        return try response.json()
    }

    @Test func aSourceIsFollowedFromItsFirstRequestToItsPurge() async throws {
        let time = AdvancingClock()
        try await WebFixture.run(
            paths,
            { settings in
                settings.policy.adminToken = "secret"
                settings.cacheClock = time.clock
            }
        ) { web async throws in
            let url = web.origin.url("/a.gif")
            let before = try await explain(web, url)
            #expect(before["answer"] as? String == "produced" && before["rendition"] as? String == "mp4")
            #expect(before["rule"] as? String == "sources.allow: *" && before["trial"] == nil && before["refusal"] == nil)
            #expect(web.origin.count("/a.gif") == 0)

            #expect(try await web.request("GET", web.target("mp4,width=8", "/a.gif")).status == 200)
            let other = try await explain(web, url)
            #expect(other["answer"] as? String == "produced" && (other["renditions"] as? [Any])?.count == 1)
            let stored = try await explain(web, web.target("mp4,width=8", "/a.gif"))
            #expect(stored["answer"] as? String == "hit" && stored["rendition"] as? String == "mp4,width=8")
            let renditions = try #require(stored["renditions"] as? [[String: Any]])
            let left = try #require(renditions.first?["fresh_for"] as? Int)
            time.pass(Int64(left))
            let stale = try await explain(web, web.target("mp4,width=8", "/a.gif"))
            #expect(stale["answer"] as? String == "stale")
            #expect((stale["summary"] as? String)?.hasPrefix("A request gets the stored rendition, while") == true)
        }
    }

    @Test func aLinkWithTrackersStandsForItsTarget() async throws {
        try await WebFixture.run([:]) { settings in
            settings.policy.adminToken = "secret"
            settings.policy.mounts["m"] = Mount(origin: try SourceURL("https://a.test/"))
        } _: { web async throws in
            for target in ["/m/a.html?fbclid=1", "/m/a.html?utm_source=x&gclid=1", "/html/https://a.test/a.gif?fbclid=1"] {
                #expect(try await explain(web, target)["url"] as? String == "https://a.test/a.gif", "\(target)")
            }
            // A video is sent without a redirect, because the origin may have such a parameter.
            let video = try await explain(web, "/mp4/https://a.test/a.gif?fbclid=1")
            #expect(video["url"] as? String == "https://a.test/a.gif?fbclid=1")
        }
    }

    @Test func anExpiredRenditionIsConfirmedByItsOrigin() async throws {
        let time = AdvancingClock()
        let answer: LoopbackOrigin.Handler = { request in
            request.headers["if-none-match"] == nil
                ? .ok(Self.gif, ["ETag: \"1\"", "Cache-Control: max-age=500, must-revalidate"])
                : .tagged("\"1\"", Self.gif, request)
        }
        try await WebFixture.run(
            ["/a.gif": answer],
            { settings in
                settings.policy.adminToken = "secret"
                settings.cacheClock = time.clock
            }
        ) { web async throws in
            let target = web.target("mp4", "/a.gif")
            #expect(try await web.request("GET", target).status == 200)
            time.pass(501)
            let expired = try await explain(web, target)
            #expect(expired["answer"] as? String == "confirmed")
            #expect((expired["summary"] as? String)?.hasPrefix("A request asks the origin first, and gets") == true)
            #expect(try await web.request("GET", target)["cache-status"] == "gifreel; fwd=stale; fwd-status=304; stored")
            #expect(try await explain(web, target)["answer"] as? String == "hit")
        }
    }

    @Test func aPageIsAsStoredAsItsFacts() async throws {
        try await WebFixture.run(paths, { $0.policy.adminToken = "secret" }) { web async throws in
            let page = web.target("html", "/a.gif")
            #expect(try await explain(web, page)["answer"] as? String == "produced")
            #expect(try await web.request("GET", page).status == 200)
            #expect(try await explain(web, page)["answer"] as? String == "hit")
        }
    }

    @Test func aFailureIsShownWithItsCauseAndAge() async throws {
        try await WebFixture.run(paths, { $0.policy.adminToken = "secret" }) { web async throws in
            for (path, code, isOfSource) in [
                ("/page.gif", "not_an_animation", true), ("/none.gif", "source_not_found", true),
                ("/half.gif", "corrupt_gif", false),
            ] {
                let asked = try await web.request("GET", web.target("mp4", path))
                let found = try await explain(web, web.origin.url(path))
                #expect(found["answer"] as? String == "failed", "\(found)")
                let failures = try #require(found["failures"] as? [[String: Any]])
                let failure = try #require(failures.first?["failure"] as? [String: Any])
                #expect(failures.count == 1 && failure["code"] as? String == code && asked.code == code)
                #expect(failure["status"] as? Int == asked.status && failure["detail"] as? String == asked.detail)
                #expect(failures[0]["of_source"] as? Bool == isOfSource)
                #expect(failures[0]["rendition"] as? String == (isOfSource ? nil : "mp4"))
                #expect((failures[0]["remaining"] as? Int).map { $0 > 0 } == true && failures[0]["age"] is Int)
                // Only the rendition that has failed is not tried again.
                let poster = try await explain(web, web.target("jpg", path))
                #expect(poster["answer"] as? String == (isOfSource ? "failed" : "produced"))
            }
        }
    }

    @Test func aTrialStoresAndRemembersNothing() async throws {
        try await WebFixture.run(paths, { $0.policy.adminToken = "secret" }) { web async throws in
            let tried = try await explain(web, web.target("mp4,width=8", "/a.gif"), fetches: true)
            let trial = try #require(tried["trial"] as? [String: Any])
            #expect(trial["source_bytes"] as? Int == Self.gif.count && trial["source_type"] as? String == "gif")
            #expect(trial["frames"] as? Int == 3 && trial["width"] as? Int == 8 && trial["failure"] == nil)
            #expect((trial["times"] as? [String: Any])?["fetch_ms"] != nil)
            let failed = try await explain(web, web.origin.url("/half.gif"), fetches: true)
            let failure = try #require((failed["trial"] as? [String: Any])?["failure"] as? [String: Any])
            #expect(failure["code"] as? String == "corrupt_gif")
            let missing = try await explain(web, web.origin.url("/none.gif"), fetches: true)
            #expect(((missing["trial"] as? [String: Any])?["failure"] as? [String: Any])?["status"] as? Int == 404)
            #expect(web.origin.count("/a.gif") == 1)
            for path in ["/a.gif", "/half.gif", "/none.gif"] {
                let after = try await explain(web, web.origin.url(path))
                #expect(after["answer"] as? String == "produced", "\(after)")
                #expect((after["failures"] as? [Any])?.isEmpty == true && (after["renditions"] as? [Any])?.isEmpty == true)
            }
        }
    }

    @Test func rulesAreNamed() async throws {
        try await WebFixture.run(
            paths,
            { settings in
                settings.policy.adminToken = "secret"
                settings.policy.publicURL = "https://gifs.example"
                settings.policy.signingKeys = SigningKeys(["an-example-key-of-at-least-32-bytes"])
                settings.policy.requiresSignature = true
                settings.policy.options = .presets
                settings.policy.mounts["media"] = Mount(origin: try SourceURL("https://origin.example/up/"))
                settings.policy.mounts["open"] = Mount(origin: try SourceURL("https://origin.example/up/"))
                settings.allow = [try #require(SourcePattern("*.good.example"))]
            }
        ) { web async throws in
            let refused = try await explain(web, "https://bad.example/a.gif", fetches: true)
            #expect(refused["answer"] as? String == "refused" && refused["rule"] == nil && refused["trial"] == nil)
            #expect((refused["refusal"] as? [String: Any])?["code"] as? String == "source_not_allowed")
            let allowed = try await explain(web, "https://a.good.example/a.gif")
            #expect(allowed["rule"] as? String == "sources.allow: *.good.example")
            #expect(allowed["lacks_signature"] as? Bool == true && allowed["answer"] as? String == "produced")
            #expect((allowed["summary"] as? String)?.hasPrefix("With a signature, a request ") == true)
            // A signature would permit the option too.
            let sized = try await explain(web, "/mp4,width=8/https://a.good.example/a.gif")
            #expect(sized["lacks_signature"] as? Bool == true && sized["refusal"] == nil, "\(sized)")
            let mounted = try await explain(web, "https://gifs.example/media/x/a.mp4")
            #expect(mounted["url"] as? String == "https://origin.example/up/x/a.gif")
            #expect(mounted["mount"] is String && mounted["mounts"] as? [String] == ["media", "open"])
            #expect(mounted["rule"] as? String == "mounts.media")
            let wrong = try await explain(web, "/mp4/https://a.good.example/a.gif?sig=wrong")
            #expect((wrong["url"] as? String)?.hasSuffix("?sig=wrong") == true)
            let signed = try await explain(web, "/mp4?url=https%3A%2F%2Fa.good.example%2Fa.gif&sig=wrong")
            #expect((signed["refusal"] as? [String: Any])?["code"] as? String == "bad_signature")
        }
    }

    @Test func aWrongQuestionIsRefused() async throws {
        try await WebFixture.run(paths, { $0.policy.adminToken = "secret" }) { web async throws in
            #expect(try await web.request("GET", "/explain?url=https://a.test/").status == 401)
            for query in [
                "", "?url=nonsense", "?url=https://a.test/&url=https://b.test/", "?url=https://a.test/&fetch=yes",
                "?fetch=true",
                "?url=https://a.test/&x=1", "?url=%2Fcache", "?url=%2F",
            ] {
                let response = try await web.request("GET", "/explain" + query, headers: Self.token)
                #expect(response.status == 400, "\(query): \(response.text)")
            }
            #expect(try await web.request("DELETE", "/explain?url=https://a.test/", headers: Self.token).status == 405)
        }
    }

    @Test func aDiskThatTakesNothingIsNamed() async throws {
        try await WebFixture.run(
            paths,
            { settings in
                settings.policy.adminToken = "secret"
                settings.minFreeBytes = 1 << 60
            }
        ) { web async throws in
            #expect(try await explain(web, web.origin.url("/a.gif"))["not_storing"] as? String == "low-space")
            let numbers = try await web.request("GET", "/cache", headers: Self.token)
            #expect(try numbers.json()["not_storing"] as? String == "low-space")
            #expect((try numbers.json()["free_bytes"] as? Int).map { $0 > 0 } == true)
        }
    }
}
