import Fetch
import Foundation
import Media
import Renditions
import SystemIO
import TestSupport
import Testing

@testable import Web

@Suite("Responses with player pages", .timeLimit(.minutes(10))) struct PageTests {
    private static let gif = GIFBuilder.animation(frames: 4, width: 41, height: 30)
    private static let key = "0123456789abcdef0123456789abcdef"
    private let paths: [String: LoopbackOrigin.Handler] = [
        "/a.gif": { _ in .ok(gif) }, "/page.gif": { _ in .ok(Array("<html>".utf8)) },
        "/short.gif": { _ in .ok(gif, ["Cache-Control: max-age=90"]) },
        "/private.gif": { _ in .ok(gif, ["Cache-Control: no-store"]) },
    ]
    /// Settings with which pages need not repeat the host of a request.
    private static func withAddress(_ settings: inout WebFixture.Settings) {
        settings.policy.publicURL = "https://gifs.example"
    }

    @Test func aPageReservesTheSpaceOfItsVideoAndConvertsNothing() async throws {
        try await WebFixture.run(paths, Self.withAddress) { web async throws in
            let page = try await web.request("GET", web.target("html", "/a.gif"))
            #expect(page.status == 200 && page["content-type"] == "text/html; charset=utf-8")
            #expect(page.permits(86400, ", stale-while-revalidate=604800, stale-if-error=604800"))
            // Sides of a video are even; those of the poster are the GIF's.
            #expect(page.text.contains("width=\"42\"") && page.text.contains("height=\"30\""))
            #expect(page.text.contains(web.target("mp4", "/a.gif")) && page.text.contains(web.target("jpg", "/a.gif")))
            let policy = try #require(page["content-security-policy"])
            #expect(policy.contains("default-src 'none'") && policy.contains("media-src 'self'"))
            #expect(page.fieldCount("content-security-policy") == 1 && page["referrer-policy"] == "no-referrer")
            let facts = try await web.request("GET", web.target("json", "/a.gif"))
            #expect(facts["cache-status"] == "gifreel; hit")
            let renditions = try #require(try facts.json()["renditions"] as? [String: [String: Any]])
            #expect(renditions.values.allSatisfy { $0["bytes"] == nil })
            let again = try await web.request("GET", web.target("html", "/a.gif"))
            #expect(again.body == page.body && again["etag"] == page["etag"] && again["cache-status"] == "gifreel; hit")
            let same = try await web.request(
                "GET", web.target("html", "/a.gif"), headers: ["If-None-Match: \(page["etag"] ?? "")"])
            #expect(same.status == 304)
            #expect(web.origin.count("/a.gif") == 1)
        }
    }

    /// The sources of the page's video: addresses and media types.
    private func sources(_ page: RawHTTPResponse) throws -> [(target: String, type: String)] {
        let pattern = try Regex("<source src=\"([^\"]*)\" type=\"([^\"]*)\"")
        return page.text.matches(of: pattern).map { match in
            (String(match[1].substring ?? ""), String(match[2].substring ?? "").replacing("&quot;", with: "\""))
        }
    }

    @Test func theVideosOfAPageHaveTheirCodecsOnceTheyAreStored() async throws {
        try await WebFixture.run(paths, Self.withAddress) { web async throws in
            let target = web.target("html", "/a.gif")
            var videos = try sources(try await web.request("GET", target))
            #expect(videos.map(\.target) == [web.target("mp4", "/a.gif")] && videos.map(\.type) == ["video/mp4"])
            _ = try await web.request("GET", web.target("mp4", "/a.gif"))
            videos = try sources(try await web.request("GET", target))
            #expect(videos.map(\.type) == ["video/mp4; codecs=\"avc1.64000a\""])
            // A page with options lists the videos with these options.
            videos = try sources(try await web.request("GET", web.target("html,width=20", "/a.gif")))
            #expect(videos.map(\.target) == [web.target("mp4,width=20", "/a.gif")])
        }
    }

    /// Animations of which one becomes smaller in AV1, and one does not.
    private static let animations = [gif, noise]

    /// Colours at random, which AV1 keeps in full resolution.
    private static let noise: [UInt8] = {
        var builder = GIFBuilder(width: 26, height: 26)
        var state: UInt32 = 1
        for _ in 0..<2 {
            let pixels = (0..<676).map { _ -> UInt8 in
                state = state &* 1_103_515_245 &+ 12345
                return UInt8(state >> 16 & 7)
            }
            builder.add(GIFBuilder.Frame(width: 26, height: 26, pixels: pixels)) { $0.delay = 10 }
        }
        return builder.finish()
    }()

    /// Both videos of an animation are stored; `isSmaller` tells whether the AV1 saves a twentieth.
    private func withVideos(_ body: (WebFixture, _ name: String, _ isSmaller: Bool) async throws -> Void) async throws {
        let paths = Dictionary(
            uniqueKeysWithValues: Self.animations.enumerated().map { index, gif in
                ("/\(index).gif", { _ in .ok(gif) } as LoopbackOrigin.Handler)
            })
        try await WebFixture.run(paths, Self.withAddress) { web async throws in
            var kinds: Set<Bool> = []
            for index in Self.animations.indices {
                let video = try await web.request("GET", web.target("mp4", "/\(index).gif")).body.count
                let smaller = try await web.request("GET", web.target("mp4,codec=av1", "/\(index).gif")).body.count
                let isSmaller = Double(smaller) <= Double(video) * 0.95
                kinds.insert(isSmaller)
                try await body(web, "/\(index).gif", isSmaller)
            }
            #expect(kinds == [true, false])
        }
    }

    @Test(.enabled(if: LinkedLibraries.has(.av1))) func aPageNamesAnAV1ThatIsClearlySmallerFirst() async throws {
        try await withVideos { web, name, isSmaller async throws in
            let page = try await web.request("GET", web.target("html", name))
            let videos = try sources(page)
            let (smaller, video) = (web.target("mp4,codec=av1", name), web.target("mp4", name))
            #expect(videos.map(\.target) == (isSmaller ? [smaller, video] : [video]))
            #expect(videos.last?.type.hasPrefix("video/mp4; codecs=\"avc1.64") == true)
            if isSmaller { #expect(videos[0].type.hasPrefix("video/mp4; codecs=\"av01.")) }
            // The address in Open Graph tags is of the video that every program can play.
            let shared = try #require(
                page.text.firstMatch(of: try Regex("property=\"og:video\" content=\"([^\"]*)\""))?[1].substring)
            #expect(
                shared.hasSuffix(
                    "/mp4\(name.replacing(".gif", with: ".mp4"))?url=\(PercentEncoding.encode(web.origin.url(name)))"))
            // The page depends on what the cache holds.
            #expect(page.permits(60, ", stale-while-revalidate=604800, stale-if-error=604800"))
        }
    }

    @Test(.enabled(if: LinkedLibraries.has(.av1))) func anAV1ThatSavesTooLittleIsNotInFactsAndMayBeRefused() async throws {
        try await withVideos { web, name, isSmaller async throws in
            let facts = try await web.request("GET", web.target("json", name)).json()
            let listed = try #require(facts["renditions"] as? [String: [String: Any]])
            #expect((listed["mp4,codec=av1"] != nil) == isSmaller && listed["mp4"] != nil)
            // As gifreel.js requests it: first through the store, then as a hit.
            let size = try await web.request("GET", web.target("mp4,codec=av1", name)).body.count
            let isLarger = try #require(facts["source"] as? [String: Any])["bytes"] as? Int ?? 0 < size
            for _ in 0..<3 {
                let answer = try await web.request(
                    "GET", web.target("mp4,codec=av1,on_miss=queue,on_larger=problem", name))
                #expect(answer.status == (isSmaller && !isLarger ? 200 : 404))
                if answer.status == 404 { #expect(answer.code == "not_smaller") }
            }
        }
    }

    @Test(.enabled(if: LinkedLibraries.has(.av1))) func aPageQueuesItsVideoInAV1() async throws {
        try await WebFixture.run(paths) {
            $0.policy.publicURL = "https://gifs.example"
            $0.policy.av1After = 2
        } _: { web async throws in
            let target = web.target("html", "/a.gif")
            // The video has to be sent twice before.
            let rest = ", stale-while-revalidate=604800, stale-if-error=604800"
            for _ in 0..<2 {
                let page = try await web.request("GET", target)
                #expect(page.permits(86_400, rest))
                #expect(try sources(page).map(\.target) == [web.target("mp4", "/a.gif")])
                _ = try await web.request("GET", web.target("mp4", "/a.gif"))
            }
            #expect(web.background.waiting == 0 && web.outcomes.all.isEmpty)
            let page = try await web.request("GET", target)
            #expect(page.permits(60, rest))
            try await waitUntil("the video in AV1") { web.outcomes.all == [.made] }
            let smaller = try await web.request("GET", web.target("mp4,codec=av1", "/a.gif"))
            #expect(smaller["cache-status"] == "gifreel; hit")
            // Nothing is left to do, and nothing is kept of a source that its origin forbids to store.
            #expect(try await web.request("GET", web.target("html", "/private.gif"))["cache-control"] == "no-store")
            #expect(try await web.request("GET", web.target("html", "/none.gif")).status == 404)
            #expect(web.background.waiting == 0 && web.outcomes.all == [.made])
        }
    }

    @Test(.enabled(if: LinkedLibraries.has(.av1))) func aClientWithoutAnAllowanceQueuesNothing() async throws {
        try await WebFixture.run(paths) { settings in
            settings.policy.av1After = 0
            // The facts of the page are the one miss.
            settings.policy.rateLimit = RateLimit(perMinute: 1, burst: 1)
        } _: { web async throws in
            #expect(try await web.request("GET", web.target("html", "/a.gif")).status == 200)
            let source = try SourceURL(web.origin.url("/a.gif"))
            let smaller = try #require(Rendition(format: .mp4).encoded(by: .av1))
            #expect(!web.background.contains(RenditionRequest(smaller, of: source)) && web.outcomes.all.isEmpty)
        }
    }

    @Test func theFactsListEveryFormatAndTheMediaTypeOfWhatIsStored() async throws {
        try await WebFixture.run(paths) { web async throws in
            let target = web.target("json", "/a.gif")
            func renditions() async throws -> [String: [String: Any]] {
                try #require(try await web.request("GET", target).json()["renditions"] as? [String: [String: Any]])
            }
            var before = try await renditions()
            #expect(Set(before.keys) == Set(Rendition.listed.map(\.canonicalText)))
            #expect(before.allSatisfy { $0.value.count == 1 && $0.value["url"] as? String == web.target($0.key, "/a.gif") })
            for rendition in Rendition.listed {
                _ = try await web.request("GET", web.target(rendition.canonicalText, "/a.gif"))
            }
            // An image sequence that is larger than its source is not listed.
            before["avif"] = nil
            let types = try await renditions().compactMapValues { $0["type"] as? String }
            let all = [
                "mp4": "video/mp4; codecs=\"avc1.64000a\"",
                "mp4,codec=av1": "video/mp4; codecs=\"av01.1.00M.08.0.000.01.13.01.0\"",
                "webm": "video/webm; codecs=\"vp09.01.10.08.03.01.13.01.00\"", "avif": "image/avif", "awebp": "image/webp",
                "gif": "image/gif",
                "jpg": "image/jpeg", "png": "image/png", "webp": "image/webp",
            ]
            #expect(types == all.filter { before[$0.key] != nil })
        }
    }

    @Test func aPageShowsABlurUntilItsPosterHasLoaded() async throws {
        try await WebFixture.run(paths) { web async throws in
            let page = try await web.request("GET", web.target("html", "/a.gif"))
            #expect(page.text.contains("<img id=\"blur\" class=\"blur\" src=\"data:image/webp;base64,"))
            #expect(page["content-security-policy"]?.contains("img-src 'self' data:") == true)
            let facts = try await web.request("GET", web.target("json", "/a.gif")).json()
            let placeholder = try #require(facts["placeholder"] as? [String: String])
            #expect(placeholder["dominant_color"] == "#ffffff")
            #expect(page.text.contains(try #require(placeholder["image"])))
            // A part of the picture has another blur.
            let cropped = try await web.request("GET", web.target("html,width=20,height=20,fit=cover", "/a.gif"))
            #expect(cropped.status == 200 && !cropped.text.contains("id=\"blur\""))
        }
    }

    @Test func thePosterOfAPageMayBeTheRepresentativeFrame() async throws {
        try await WebFixture.run(paths) { web async throws in
            let page = try await web.request("GET", web.target("html,frame=auto,start=0.1", "/a.gif"))
            #expect(page.text.contains("poster=\"\(web.target("jpg,frame=auto", "/a.gif"))\""), "\(page.text)")
            let poster = try await web.request("GET", web.target("jpg,frame=auto", "/a.gif"))
            #expect(poster.status == 200 && poster["content-type"] == "image/jpeg")
            #expect(try await web.request("GET", web.target("jpg,frame=auto", "/a.gif"))["cache-status"] == "gifreel; hit")
            #expect(try await web.request("GET", web.target("jpg,frame=best", "/a.gif")).code == "bad_option")
        }
    }

    /// Otherwise a client could have caches send others to a host of its own.
    @Test func aPageWithTheHostOfItsRequestIsComparedBeforeEachUse() async throws {
        // The document of a page names the seconds left, so it is another one a second later.
        try await WebFixture.run(paths, { $0.cacheClock = .stopped }) { web async throws in
            for target in [web.target("html", "/a.gif"), "/oembed?url=\(web.origin.url("/a.gif"))"] {
                let page = try await web.request("GET", target)
                #expect(page.status == 200 && page["cache-control"] == "no-cache", "\(target)")
                let tag = ["If-None-Match: \(try #require(page["etag"]))"]
                #expect(try await web.request("GET", target, headers: tag).status == 304)
                let other = try await web.request("GET", "http://other.example" + target, headers: tag)
                #expect(other.status == 200 && other.text.contains("other.example"), "\(target)")
            }
        }
    }

    @Test func theOriginsDirectivesConcernThePageToo() async throws {
        try await WebFixture.run(paths, Self.withAddress) { web async throws in
            let short = try await web.request("GET", web.target("html", "/short.gif"))
            #expect(short.permits(90, ", stale-while-revalidate=604800, stale-if-error=604800"))
            #expect(try await web.request("GET", web.target("html", "/private.gif"))["cache-control"] == "no-store")
        }
    }

    @Test func anErrorIsAPageForBrowsersAndADocumentForPrograms() async throws {
        try await WebFixture.run(paths) { web async throws in
            for target in [web.target("html", "/page.gif"), web.target("html", "/none.gif"), "/html/nonsense"] {
                let page = try await web.request("GET", target, headers: ["Accept: text/html"])
                let document = try await web.request("GET", target, headers: ["Accept: */*"])
                #expect(page.status == document.status && page.status >= 400)
                #expect(
                    page["content-type"] == "text/html; charset=utf-8" && document["content-type"] == "application/problem+json"
                )
                #expect(page["vary"] == "Accept" && document["vary"] == "Accept")
                #expect(page["cache-control"] == document["cache-control"])
                let code = try #require(document.code)
                #expect(page.text.contains(code))
            }
            let refused = try await web.request("POST", web.target("html", "/a.gif"), headers: ["Accept: text/html"])
            #expect(refused.status == 405 && refused["allow"] == "GET, HEAD, OPTIONS" && refused["vary"] == "Accept")
            #expect(refused["content-type"] == "text/html; charset=utf-8" && refused.text.contains("method_not_allowed"))
            // Only pages have error pages.
            let video = try await web.request("GET", web.target("mp4", "/none.gif"), headers: ["Accept: text/html"])
            #expect(video["content-type"] == "application/problem+json" && video["vary"] == nil)
        }
    }

    @Test func theLinksOfASignedPageAreSigned() async throws {
        let keys = SigningKeys([Self.key])
        try await WebFixture.run(paths) { settings in
            settings.policy.signingKeys = keys
            settings.policy.publicURL = "https://gifs.example"
            settings.policy.requiresSignature = true
        } _: { web async throws in
            let source = try SourceURL(web.origin.url("/a.gif"))
            let expires = Int64(currentSeconds() + 1000)
            let signer = keys
            let target = try #require(signer.target("html", [], of: source, expires: expires))
            let page = try await web.request("GET", target)
            #expect(page.status == 200, "\(page.text)")
            let maxAge = try #require(page["cache-control"]?.firstMatch(of: try Regex("max-age=(\\d+)"))?[1].substring)
            #expect((900...1000).contains(Int(maxAge) ?? 0))
            for format in ["mp4", "jpg"] {
                let pattern = try Regex("\"(/\(format)[^\"]*)\"")
                let text = try #require(page.text.firstMatch(of: pattern)?[1].substring)
                let link = String(text).replacing("&amp;", with: "&")
                #expect(link.contains("expires=\(expires)"))
                #expect(try await web.request("GET", link).status == 200, "\(link)")
            }
            #expect(try await web.request("GET", web.target("html", "/a.gif")).code == "bad_signature")
        }
    }

    /// Facebook marks each click of each visitor, Mailchimp each recipient.
    @Test func parametersThatOtherSitesAppendToLinksAreRemovedByARedirect() async throws {
        try await WebFixture.run(paths) {
            $0.policy.mounts["m"] = Mount(origin: try SourceURL("https://a.test/"))
            $0.policy.signingKeys = SigningKeys([Self.key])
            $0.policy.adminToken = "secret"
        } _: { web async throws in
            /// The source that purges, explain and oEmbed take a link for.
            func named(_ link: String) async throws -> String? {
                let explain = "/explain?url=\(PercentEncoding.encode(link))"
                return try await web.request("GET", explain, headers: ["Authorization: Bearer secret"]).json()["url"] as? String
            }
            let source = web.origin.url("/a.gif")
            let encoded = PercentEncoding.encode(source)
            let signed = try #require(SigningKeys([Self.key]).target("html", of: SourceURL(source)))
            for (target, location) in [
                ("/html/\(source)?fbclid=1", "./a.gif"), ("/html/\(source)?v=2&utm_source=x&gclid=1", "./a.gif?v=2"),
                ("/html?url=\(encoded)&fbclid=1", "./html?url=\(encoded)"),
                ("/html/a.html?url=\(encoded)&mc_cid=1&mc_eid=2", "./a.html?url=\(encoded)"),
                ("/mp4?url=\(encoded)&fbclid=1", "./mp4?url=\(encoded)"), (signed + "?fbclid=1", "./a.gif"),
                (signed.replacing("/html", with: "/mp4") + "?fbclid=1", "./a.gif"),
                ("/m/x/a.html?gad_source=1&gad_campaignid=2&gclid=3", "./a.html"),
                ("/m/x/a.html?gclid=3&gclsrc=aw.ds", "./a.html"), ("/m/x/a.html?srsltid=x", "./a.html"),
                ("/m/x/a.mp4?width=20&utm_source=x&_gl=1*a*_ga*b", "./a.mp4?width=20"),
                ("/m/x/a.html?fbclid=1", "./a.html"), ("/m/x/a.mp4?width=20&fbclid", "./a.mp4?width=20"),
            ] {
                let response = try await web.request("GET", target)
                #expect(response.status == 302 && response["location"] == location, "\(target)")
                #expect(response["cache-control"] == "no-store" && response["access-control-allow-origin"] == "*")
                let plain = try #require(RouteParser.withoutTrackers(target))
                let url = try await named(plain)
                #expect(try await named(target) == url && url != nil, "\(target)")
            }
            #expect(web.origin.count("/a.gif") == 0)
            // What can be answered as it is: parameters of the source.
            let signedWithTrackers = try #require(
                SigningKeys([Self.key]).target("html", of: SourceURL(source + "?utm_source=x")))
            for target in ["/mp4/\(source)?fbclid=1", "/html/\(source)?fbclid=1&v=2", signedWithTrackers] {
                #expect(try await web.request("GET", target).status == 200, "\(target)")
            }
            // A signature that has expired covers the parameters: without them, it would be called wrong.
            let expired = try #require(
                SigningKeys([Self.key]).target("html", of: SourceURL(source + "?utm_source=x"), expires: 1))
            #expect(try await web.request("GET", expired).code == "expired_signature")
            for target in [signedWithTrackers, expired] {
                #expect(try await named(target) == source + "?utm_source=x", "\(target)")
            }
            #expect(try await web.request("GET", "/html/\(source)?width=1&url=x&fbclid").status == 302)
            #expect(try await web.request("GET", "/nothing?fbclid=1").status == 404)
            #expect(try await web.request("POST", "/mp4?fbclid=1", body: Self.gif).code == "bad_option")
        }
    }

    @Test func aPageShowsNoVideoOfWhatIsStillOrTiny() async throws {
        var still = GIFBuilder(width: 40, height: 30)
        still.add(color: 1)
        let files = ["/still.gif": still.finish(), "/tiny.gif": GIFBuilder.animation(frames: 3, width: 16, height: 16)]
        let paths = files.mapValues { gif -> LoopbackOrigin.Handler in { _ in .ok(gif) } }
        try await WebFixture.run(paths, Self.withAddress) { web async throws in
            for name in ["/still.gif", "/tiny.gif"] {
                let page = try await web.request("GET", web.target("html", name))
                #expect(page.status == 200 && !page.text.contains("<video"), "\(name)")
                #expect(page.text.contains("src=\"\(web.target("auto", name))\" width="), "\(page.text)")
                #expect(page["content-security-policy"]?.contains("media-src") == false)
                // What does not move needs no button, and no program plays it.
                let moves = name == "/tiny.gif"
                #expect(page.text.contains("<button") == moves && page.text.contains("<script>") == moves)
                #expect(page.text.contains("og:video") == moves && page.text.contains("twitter:player") == moves)
                #expect(page.text.contains("alt=\"Animation: ") == moves)
                #expect(!page.text.contains("{{"))
            }
            // Enlarged pixels are no icon.
            #expect(try await web.request("GET", web.target("html,zoom=4", "/tiny.gif")).text.contains("<video"))
        }
    }

    @Test func aPageOfATransparentAnimationHasAVideoIfItStatesABackground() async throws {
        var builder = GIFBuilder(width: 40, height: 30)
        for color: UInt8 in [1, 2] {
            let pixels = (0..<1200).map { $0 < 600 ? 0 : color }
            builder.add(GIFBuilder.Frame(width: 40, height: 30, pixels: pixels)) { $0.transparent = 0 }
        }
        let gif = builder.finish()
        try await WebFixture.run(["/a.gif": { _ in .ok(gif) }], Self.withAddress) { web async throws in
            // White is the default, which a request may state as well.
            for (format, hasVideo) in [("html", false), ("html,bg=ffffff", true), ("html,bg=000000", true)] {
                let page = try await web.request("GET", web.target(format, "/a.gif"))
                #expect(page.status == 200 && page.text.contains("<video") == hasVideo, "\(format)")
                #expect(page.text.contains(web.target("auto", "/a.gif")) != hasVideo, "\(format)")
            }
        }
    }

    @Test func aPageMayShowTheGIFUntilThereIsAVideo() async throws {
        try await WebFixture.run(paths, Self.withAddress) { web async throws in
            let target = web.target("html,on_miss=original", "/a.gif")
            let gif = "<img src=\"\(web.origin.url("/a.gif"))\" width=\"41\" height=\"30\""
            let first = try await web.request("GET", target)
            #expect(first.status == 200 && first["cache-control"] == "no-cache" && first.text.contains(gif))
            #expect(!first.text.contains("<video") && !first.text.contains("<script"))
            // Pages with an embedder policy frame only pages that have one, in which the GIF of the origin would need a permission.
            #expect(first["cross-origin-embedder-policy"] == nil)
            // The page changes when the video is known to fail too, which has no date.
            #expect(first["last-modified"] == nil && first["etag"] != nil)
            #expect(first["content-security-policy"]?.contains("img-src 'self' http: https:") == true)
            // The video is produced behind the first page.
            var next = first
            try await waitUntil("the video") {
                next = try await web.request("GET", target)
                return next.text.contains("<video")
            }
            #expect(next["last-modified"] != nil)
            #expect(!next.text.contains(gif) && next["cache-control"]?.hasPrefix("public") == true)
            #expect(next["content-security-policy"]?.contains("http:") == false)
            #expect(next["cross-origin-embedder-policy"] == "require-corp")
            #expect(try await web.request("GET", web.target("mp4", "/a.gif"))["cache-status"] == "gifreel; hit")
        }
    }

    @Test func theFactsAndTheVideoOfAPageWithTheGIFAreOneMissAndOneFetch() async throws {
        try await WebFixture.run(paths) {
            $0.policy.rateLimit = RateLimit(perMinute: 1, burst: 1)
        } _: { web async throws in
            let page = try await web.request("GET", web.target("html,on_miss=original", "/a.gif"))
            #expect(page.status == 200 && page.text.contains("<img src=\"\(web.origin.url("/a.gif"))\""), "\(page.text)")
            #expect(web.origin.count("/a.gif") == 1)
            // The client has no other miss.
            #expect(try await web.request("GET", web.target("json", "/short.gif")).status == 429)
        }
    }

    @Test func aPageWithTheGIFOfAMissingSourceCostsOneMiss() async throws {
        try await WebFixture.run(paths) {
            $0.policy.rateLimit = RateLimit(perMinute: 1, burst: 2)
        } _: { web async throws in
            #expect(try await web.request("GET", web.target("html,on_miss=original", "/none.gif")).status == 404)
            #expect(try await web.request("GET", web.target("json", "/a.gif")).status == 200)
            #expect(try await web.request("GET", web.target("json", "/short.gif")).status == 429)
        }
    }

    @Test func aPageOfAMountShowsTheGIFAtTheMount() async throws {
        let origin = try LoopbackOrigin(paths)
        defer { origin.stop() }
        try await WebFixture.run([:]) { settings in
            var mount = Mount(origin: try SourceURL(origin.url("/")))
            settings.policy.mounts = ["fixed": mount]
            mount.negotiates = true
            mount.onMiss = .original
            settings.policy.mounts["media"] = mount
        } _: { web async throws in
            let page = try await web.request("GET", "/media/a.html")
            #expect(page.text.contains("<img src=\"/media/a.gif\"") && !page.text.contains("127.0.0.1:\(origin.port)"))
            #expect(try await web.request("GET", "/media/short.html?on_miss=wait").text.contains("<video"))
            // Without negotiation there is no address of the GIF.
            #expect(try await web.request("GET", "/fixed/short.html?on_miss=original").text.contains("<video"))
        }
    }

    @Test func aPageOfAMountShowsNothingOfItsOrigin() async throws {
        let origin = try LoopbackOrigin(paths)
        defer { origin.stop() }
        try await WebFixture.run([:]) { settings in
            settings.policy.mounts = ["media": Mount(origin: try SourceURL(origin.url("/")))]
            settings.policy.publicURL = "https://gifs.example/x"
        } _: { web async throws in
            let page = try await web.request("GET", "/media/a.html?width=20")
            #expect(page.status == 200 && !page.text.contains("127.0.0.1"))
            #expect(
                page.text.contains("/x/media/a.mp4?width=20")
                    && page.text.contains("https://gifs.example/x/media/a.jpg?width=20"))
            #expect(page.text.contains("<title>a.gif</title>"))
        }
    }
}

@Suite("The memo answers only what it may", .timeLimit(.minutes(10))) struct HitMemoTests {
    private static let gif = GIFBuilder.animation(frames: 4, width: 40, height: 30)

    @Test func aPurgedRenditionIsNotAnsweredFromMemory() async throws {
        try await WebFixture.run(["/a.gif": { _ in .ok(Self.gif) }]) { settings in
            settings.policy.adminToken = "t"
        } _: { web async throws in
            let target = web.target("mp4", "/a.gif")
            for _ in 0..<3 { _ = try await web.request("GET", target) }
            #expect(try await web.request("GET", target)["cache-status"] == "gifreel; hit")
            #expect(try await web.request("PURGE", target, headers: ["Authorization: Bearer t"]).status == 200)
            #expect(try await web.request("GET", target)["cache-status"] == "gifreel; fwd=miss; stored")
            #expect(web.origin.count("/a.gif") == 2)
        }
    }

    @Test func anExpiredSignatureIsRefusedAlsoForAKnownTarget() async throws {
        let keys = SigningKeys(["0123456789abcdef0123456789abcdef"])
        try await WebFixture.run(["/a.gif": { _ in .ok(Self.gif) }]) { settings in
            settings.policy.signingKeys = keys
            settings.policy.requiresSignature = true
        } _: { web async throws in
            let source = try SourceURL(web.origin.url("/a.gif"))
            let expires = Int64(currentSeconds() + 4)
            let target = try #require(keys.target("mp4", [], of: source, expires: expires))
            #expect(try await web.request("GET", target).status == 200)
            try await waitUntil("the end of the signature") { Int64(currentSeconds()) >= expires }
            let late = try await web.request("GET", target)
            #expect(late.code == "expired_signature" && late["cache-control"] == "no-store")
        }
    }

    @Test func methodsWithoutARenditionAreNotAnsweredFromTheMemo() async throws {
        try await WebFixture.run(["/a.gif": { _ in .ok(Self.gif) }]) { web async throws in
            let target = web.target("mp4", "/a.gif")
            for _ in 0..<2 { _ = try await web.request("GET", target) }
            #expect(try await web.request("POST", target).status == 405)
            #expect(try await web.request("DELETE", target).status == 405)
            #expect(try await web.request("OPTIONS", target).status == 204)
            let head = try await web.request("HEAD", target)
            #expect(head.status == 200 && head["cache-status"] == "gifreel; hit")
        }
    }

    @Test func anObjectIsAnsweredOnlyUnderItsOwnExtension() async throws {
        try await WebFixture.run(["/a.gif": { _ in .ok(Self.gif) }]) { web async throws in
            let upload = try await web.request("POST", "/mp4", body: Self.gif)
            let address = try #require(upload["content-location"])
            for _ in 0..<2 {
                #expect(try await web.request("GET", address)["cache-status"] == "gifreel; hit")
                let other = String(address.dropLast(3)) + "jpg"
                #expect(try await web.request("GET", other).code == "not_found")
            }
        }
    }
}
