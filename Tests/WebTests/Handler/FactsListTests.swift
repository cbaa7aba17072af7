import Fetch
import Foundation
import TestSupport
import Testing

@testable import Renditions
@testable import Web

@Suite("POST /facts says what is stored of the images of a page", .timeLimit(.minutes(10))) struct FactsListTests {
    private static let gif = GIFBuilder.animation(frames: 8, width: 80, height: 60) + [UInt8](repeating: 0, count: 50_000)
    private static let sequence = Rendition.Format.named("avif") != nil ? "avif" : "awebp"

    private func run(
        _ configure: (inout WebFixture.Settings) throws -> Void = { _ in }, _ body: (WebFixture) async throws -> Void
    ) async throws {
        let paths: [String: LoopbackOrigin.Handler] = ["/a.gif": { _ in .ok(Self.gif) }, "/b.gif": { _ in .ok(Self.gif) }]
        try await WebFixture.run(paths, configure, body)
    }

    private func list(
        _ web: WebFixture, _ urls: [String], _ query: String = "", headers: [String] = []
    ) async throws -> RawHTTPResponse {
        try await web.request("POST", "/facts\(query)", headers: headers, body: Array(JSONEncoder().encode(urls)))
    }

    private func images(_ response: RawHTTPResponse) throws -> [[String: Any]] {
        #expect(response.status == 200 && response["content-type"] == "application/json", "\(response.text)")
        return try #require(try response.json()["images"] as? [[String: Any]])
    }

    @Test func eachSourceHasWhatIsStoredOfIt() async throws {
        try await run { settings in
            settings.allow = [try #require(SourcePattern("127.0.0.1"))]
        } _: { web async throws in
            let (known, unknown, gone) = (web.origin.url("/a.gif"), web.origin.url("/b.gif"), web.origin.url("/none.gif"))
            _ = try await web.request("GET", "/json/\(known)")
            _ = try await web.request("GET", "/\(Self.sequence)/\(known)")
            _ = try await web.request("GET", "/json/\(gone)")
            let response = try await list(web, [known, unknown, gone, "https://elsewhere.test/a.gif", "/healthz", "x"])
            #expect(response["cache-control"] == "no-store" && response["access-control-allow-origin"] == "*")
            let found = try images(response)
            #expect(found.map { $0["state"] as? String } == ["known", "unknown", "failed", "refused", "refused", "refused"])
            #expect(
                found.map { ($0["page"] as? [String: Any])?["as"] as? String } == [
                    "image", "image", "stay", "stay", "stay", "stay",
                ])
            #expect(found[3]["code"] as? String == "source_not_allowed" && found[5]["code"] as? String == "bad_source_url")
            let source = try #require(found[0]["source"] as? [String: Any])
            #expect(source["bytes"] as? Int == Self.gif.count && source["width"] as? Int == 80)
            #expect(source["transparent"] as? Bool == false && source["animated"] as? Bool == true)
            #expect(source["loop_count"] as? Int == 0 && source["type"] as? String == "gif" && source["frames"] as? Int == 8)
            let renditions = try #require(found[0]["renditions"] as? [String: [String: Any]])
            #expect(Array(renditions.keys) == [Self.sequence])
            #expect(renditions[Self.sequence]?["bytes"] as? Int ?? 0 > 0)
            let page = try #require(found[0]["page"] as? [String: Any])
            #expect(page["src"] as? String == "/auto/\(known)" && page["still"] as? String == "/jpg/\(known)")
            // The verdict of `json` is the same.
            let facts = try await web.request("GET", "/json/\(known)").json()
            #expect(facts["page"] as? NSDictionary == page as NSDictionary)
            #expect((found[1]["page"] as? [String: Any])?["src"] as? String == "/auto/\(unknown)")
            #expect(web.origin.count("/b.gif") == 0)
        }
    }

    @Test func otherRenditionsOfASourceDoNotHideItsFacts() async throws {
        try await run { web async throws in
            let url = web.origin.url("/a.gif")
            _ = try await web.request("GET", "/json/\(url)")
            try await web.addRenditions(1000, of: url)
            let found = try images(try await list(web, [url, url]))
            #expect(found.map { $0["state"] as? String } == ["known", "known"])
        }
    }

    @Test func whatIsNotStoredIsQueuedOnRequest() async throws {
        try await run { web async throws in
            let url = web.origin.url("/a.gif")
            var first = try #require(try images(try await list(web, [url], "?queue=true")).first)
            #expect(first["state"] as? String == "unknown" && first["queued"] as? Bool == true)
            try await waitUntil("the facts and the sequence") {
                first = try #require(try images(try await list(web, [url], "?queue=true")).first)
                return (first["renditions"] as? [String: Any])?[Self.sequence] != nil
            }
            #expect(first["state"] as? String == "known" && first["queued"] == nil)
            #expect(web.origin.count("/a.gif") == 1)
        }
    }

    @Test func aClientThatPermitsNoFetchQueuesNothing() async throws {
        try await run { web async throws in
            let url = web.origin.url("/a.gif")
            let stored = ["Cache-Control: only-if-cached"]
            let found = try images(try await list(web, [url], "?queue=true", headers: stored))
            #expect(found.first?["state"] as? String == "unknown" && found.first?["queued"] == nil)
            let module = try await web.request("GET", "/facts.js?url=\(url)", headers: stored)
            #expect(module.text == "export default \"0\"" && web.background.waiting == 0 && web.origin.count("/a.gif") == 0)
        }
    }

    @Test func aClientWithoutAllowanceQueuesNothing() async throws {
        try await run {
            $0.policy.rateLimit = RateLimit(perMinute: 1, burst: 1)
        } _: { web async throws in
            let urls = ["/a.gif", "/b.gif"].map { web.origin.url($0) }
            let queued = try images(try await list(web, urls, "?queue=true")).filter { $0["queued"] as? Bool == true }
            #expect(queued.count == 1)
        }
    }

    @Test func pathsBelowMountsHaveAddressesThere() async throws {
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(Self.gif) }])
        defer { origin.stop() }
        try await run { settings in
            var mount = Mount(origin: try SourceURL(origin.url("/")))
            mount.rule.fields = ["X-Key: 1"]
            settings.policy.mounts["m"] = mount
        } _: { web async throws in
            let url = origin.url("/a.gif")
            let found = try images(try await list(web, ["/m/a.gif", url, "/webp/\(url)", "/m"]))
            let page = try #require(found[0]["page"] as? [String: Any])
            #expect(page["src"] as? String == "/m/a.auto" && page["still"] as? String == "/m/a.webp")
            #expect(found[1...].allSatisfy { $0["state"] as? String == "refused" })
        }
    }

    @Test func aSourceMayBeNamedByThePathOfARendition() async throws {
        try await run { web async throws in
            let url = web.origin.url("/a.gif")
            _ = try await web.request("GET", "/json/\(url)")
            let found = try images(try await list(web, ["/webp,width=4/\(url)", "/json?url=\(url)", "/openapi.json"]))
            #expect(found.map { $0["state"] as? String } == ["known", "known", "refused"])
        }
    }

    @Test func theOptionsOfAPathDetermineWhatThePageShows() async throws {
        try await run { web async throws in
            let url = web.origin.url("/a.gif")
            let (path, automatic) = ("/mp4,codec=h264,width=40/\(url)", "/auto,width=40/\(url)")
            // What is stored without options is of no use to the page.
            for format in ["json", Self.sequence] { #expect(try await web.request("GET", "/\(format)/\(url)").status == 200) }
            let before = try #require(try images(try await list(web, [path])).first)
            #expect(before["state"] as? String == "known" && (before["renditions"] as? [String: Any])?.isEmpty == true)
            let page = try #require(before["page"] as? [String: Any])
            #expect(page["src"] as? String == automatic && page["still"] as? String == "/jpg,width=40/\(url)")
            func answer() async throws -> String { try await web.request("GET", "/facts.js?try=0&url=\(automatic)").text }
            #expect(try await answer() == #"export default "3""#)
            try await waitUntil("the sequence") { try await answer() == #"export default "7""# }
            let after = try #require(try images(try await list(web, [path])).first)
            let sequence = (after["renditions"] as? [String: [String: Any]])?[Self.sequence]
            #expect(sequence?["url"] as? String == "/\(Self.sequence),width=40/\(url)" && sequence?["width"] as? Int == 40)
            let stored = ["Accept: image/avif,image/webp", "Cache-Control: only-if-cached"]
            #expect(try await web.request("GET", automatic, headers: stored)["cache-status"] == "gifreel; hit")
            #expect(try await web.request("GET", "/webp,width=40/\(url)", headers: stored).status == 200)
        }
    }

    @Test func aSignatureCoversTheList() async throws {
        let keys = SigningKeys(["0123456789abcdef0123456789abcdef"])
        try await run { settings in
            settings.policy.signingKeys = keys
            settings.policy.requiresSignature = true
        } _: { web async throws in
            let urls = ["/a.gif", "/b.gif"].map { web.origin.url($0) }
            let expires = currentSeconds() + 1000
            let text = "facts\nexpires=\(expires),queue=false\n\(urls.joined(separator: "\n"))"
            let query = "?queue=false&expires=\(expires)&sig=\(keys.signature(of: text) ?? "")"
            #expect(try await list(web, urls).code == "bad_signature")
            #expect(try await list(web, urls.reversed(), query).code == "bad_signature")
            #expect(try await list(web, urls, query.replacing("queue=false", with: "queue=true")).code == "bad_signature")
            let found = try images(try await list(web, urls, query))
            // The addresses are signed with the same expiry.
            let page = try #require(found[0]["page"] as? [String: Any])
            for name in ["src", "still"] {
                let target = try #require(page[name] as? String)
                #expect(target.contains("expires=\(expires)") && target.contains("sig="))
                #expect(try await web.request("GET", target).status == 200)
            }
        }
    }

    @Test func anUnsignedListIsAnsweredForSourcesWhoseMountNeedsNoSignature() async throws {
        try await run { settings in
            settings.policy.signingKeys = SigningKeys(["0123456789abcdef0123456789abcdef"])
            settings.policy.requiresSignature = true
            var mount = Mount(origin: try SourceURL("https://open.test/"))
            mount.rule.requiresSignature = false
            settings.policy.mounts["open"] = mount
        } _: { web async throws in
            let found = try images(try await list(web, ["/open/a.gif", web.origin.url("/a.gif")]))
            #expect(found.map { $0["state"] as? String } == ["unknown", "refused"])
            #expect(found[1]["code"] as? String == "bad_signature")
            let module = try await web.request("GET", "/facts.js?try=0&url=/open/a.gif")
            #expect(module.status == 200 && module.text == "export default \"0\"", "\(module.text)")
            #expect(try await list(web, ["/open/a.gif"], "?sig=x").code == "bad_signature")
        }
    }

    /// The example of docs/access.md.
    @Test func theDocumentedSignatureOfAListIsValid() async throws {
        try await run { settings in
            settings.policy.signingKeys = SigningKeys(["an-example-key-of-at-least-32-bytes"])
            settings.policy.requiresSignature = true
            settings.policy.mounts["media"] = Mount(origin: try SourceURL("https://media.test/"))
        } _: { web async throws in
            let query = "?expires=2000000000&sig=cp7IlO4zTO4KjfWjC_3bOEGtNB75dQ3ue7Ui5_zc_cQ"
            let found = try images(try await list(web, ["https://example.com/a.gif", "/media/b.gif"], query))
            #expect(found.map { $0["state"] as? String } == ["unknown", "unknown"])
        }
    }

    @Test func invalidListsAreRefused() async throws {
        try await run { web async throws in
            for body in [
                "", "{}", "[1]", "[\"a\\nb\"]",
                "[\(Array(repeating: "\"https://a.test/\"", count: 501).joined(separator: ","))]",
            ] {
                let response = try await web.request("POST", "/facts", body: Array(body.utf8))
                #expect(response.status == 400 && response.code == "bad_request", "\(body.prefix(20))")
            }
            #expect(try await list(web, [], "?x=1").code == "bad_option")
            #expect(try await list(web, [], "?queue=1").code == "bad_option")
            #expect(try images(try await list(web, [])).isEmpty)
            let large = try await web.request("POST", "/facts", body: [UInt8](repeating: 0x20, count: (1 << 20) + 1))
            #expect(large.status == 413)
            let get = try await web.request("GET", "/facts")
            #expect(get.status == 405 && get["allow"] == "POST, OPTIONS")
            let preflight = try await web.request("OPTIONS", "/facts", headers: ["Origin: https://a.test"])
            #expect(preflight.status == 204 && preflight["access-control-allow-methods"]?.contains("POST") == true)
        }
    }

    @Test func theScriptReceivesItsAnswersAsAModule() async throws {
        try await run { settings in
            settings.allow = [try #require(SourcePattern("127.0.0.1"))]
        } _: { web async throws in
            let (known, unknown) = (web.origin.url("/a.gif"), web.origin.url("/b.gif"))
            let target = "/facts.js?try=0" + [known, unknown, "https://elsewhere.test/a.gif"].map { "&url=\($0)" }.joined()
            func answers() async throws -> [Int] {
                let response = try await web.request("GET", target)
                #expect(
                    response.status == 200 && response["content-type"] == "text/javascript; charset=utf-8", "\(response.text)")
                #expect(response["cache-control"] == "no-store" && response["access-control-allow-origin"] == "*")
                let match = try #require(response.text.wholeMatch(of: /export default "([0-9]*)"/), "\(response.text)")
                return match.1.compactMap(\.wholeNumberValue)
            }
            _ = try await web.request("GET", "/json/\(known)")
            // Known and an animation; unknown; refused.
            #expect(try await answers() == [3, 0, 1])
            _ = try await web.request("GET", "/\(Self.sequence)/\(known)")
            #expect(try await answers()[0] == 7)
            // What the server did not know is queued.
            while try await answers()[1] != 7 { await Task.yield() }
            // The still picture is made before the animation, from the same fetch.
            #expect(try await web.request("GET", "/webp/\(unknown)")["cache-status"] == "gifreel; hit")
            #expect(web.origin.count("/b.gif") == 1)
            #expect(try await web.request("GET", target + "&a=b").status == 400)
            #expect(try await web.request("POST", "/facts.js").status == 405)
        }
    }

    @Test func theFactsOfAStoredSequenceAreQueued() async throws {
        try await run { web async throws in
            let url = web.origin.url("/a.gif")
            _ = try await web.request("GET", "/\(Self.sequence)/\(url)")
            try await waitUntil("the facts") {
                try await web.request("GET", "/facts.js?try=0&url=\(url)").text == #"export default "7""#
            }
        }
    }

    @Test func theScriptLearnsWhichAnimationsAreVideos() async throws {
        func large(loops: Int?) -> [UInt8] {
            var builder = GIFBuilder(width: 1000, height: 800)
            if let loops { builder.addLoop(loops) }
            for color in 1...2 { builder.add(color: UInt8(color), delay: 2) }
            return builder.finish() + [UInt8](repeating: 0, count: 50_000)
        }
        let (endless, once) = (large(loops: 0), large(loops: nil))
        try await WebFixture.run(["/endless.gif": { _ in .ok(endless) }, "/once.gif": { _ in .ok(once) }]) {
            web async throws in
            let urls = ["/endless.gif", "/once.gif"].map { web.origin.url($0) }
            let target = "/facts.js?try=0" + urls.map { "&url=\($0)" }.joined()
            for url in urls {
                for format in ["json", "mp4"] { #expect(try await web.request("GET", "/\(format)/\(url)").status == 200) }
            }
            // The other one ends within five seconds.
            #expect(try await web.request("GET", target).text == #"export default "91""#)
        }
    }
}
