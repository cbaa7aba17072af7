import Fetch
import Foundation
import TestSupport
import Testing

@testable import Renditions

@Suite("Mounts map paths to origins", .timeLimit(.minutes(10))) struct MountTests {
    private let gif = GIFBuilder.animation(frames: 4)

    @Test func aMountThatNegotiatesAnswersTheGIFToClientsThatDoNotNameTheVideo() throws {
        // Large enough for its video to be smaller.
        let gif = GIFBuilder.animation(frames: 40, width: 160, height: 120)
        let origin = try LoopbackOrigin(["/up/a.gif": { _ in .ok(gif) }])
        defer { origin.stop() }
        let server = try GifreelProcess([
            "mounts.media.origin=\(origin.url("/up/"))", "mounts.media.negotiate=true", "mounts.media.on_miss=wait",
        ])
        // Each twice: made, and found hot.
        for round in 0..<2 {
            for accept in ["video/mp4", "image/avif, video/*;q=0.5, */*;q=0.1", "VIDEO/MP4;codecs=\"a, b\""] {
                let answer = try server.request("GET", "/media/a.gif", headers: ["Accept: \(accept)"])
                #expect(
                    answer.status == 200 && answer["content-type"] == "video/mp4" && answer["vary"] == "Accept", "\(accept)")
            }
            for accept in ["image/*", "*/*", "video/webm", "video/mp4;q=0, */*", "image/png;x=\"video/mp4\"", ""] {
                let answer = try server.request("GET", "/media/a.gif", headers: ["Accept: \(accept)"])
                #expect(
                    answer.status == 200 && answer["content-type"] == "image/gif" && answer["vary"] == "Accept", "\(accept)")
                #expect(answer.body == gif, "\(accept)")
                if round == 1 { #expect(answer["cache-status"] == "gifreel; hit") }
            }
        }
        let plain = try server.request("GET", "/media/a.gif")
        #expect(
            plain.body == gif
                && plain.permits(86400, ", stale-while-revalidate=604800, stale-if-error=604800"))
        let tag = try #require(plain["etag"])
        let same = try server.request("GET", "/media/a.gif", headers: ["If-None-Match: \(tag)"])
        #expect(same.status == 304 && same["vary"] == "Accept")
        let part = try server.request("GET", "/media/a.gif", headers: ["Range: bytes=0-5"])
        #expect(part.status == 206 && part.body == Array("GIF89a".utf8) && part["vary"] == "Accept")
        let head = try server.request("HEAD", "/media/a.gif")
        #expect(head["content-length"] == "\(gif.count)" && head["content-type"] == "image/gif")
        // The video's own name is not negotiated, and the source itself is not a format that a target can name.
        let video = try server.request("GET", "/media/a.mp4?bframes=0", headers: ["Accept: image/*"])
        #expect(video["content-type"] == "video/mp4" && video["vary"] == nil)
        #expect(try server.request("GET", "/original/\(origin.url("/up/a.gif"))").status == 404)
        #expect(origin.count("/up/a.gif") <= 2)
    }

    @Test func aMountServesTheFormatsThatItNames() throws {
        var apng = APNGBuilder(width: 40, height: 30)
        for word: UInt32 in [0xff00_00ff, 0xff00_ff00] {
            apng.add(.init(width: 40, height: 30, word: word)) { $0.delay = (1, 30) }
        }
        var webp = WebPBuilder(width: 40, height: 30)
        for word: UInt32 in [0xff00_00ff, 0x80ff_0000] { webp.add(.init(width: 40, height: 30, word: word)) }
        var still = APNGBuilder(width: 40, height: 30, plays: nil)
        still.addPicture(.init(width: 40, height: 30, word: 0xff00_00ff))
        let files = ["/a.png": apng.finish(), "/a.webp": webp.finish(), "/a.gif": gif, "/still.png": still.finish()]
        let origin = try LoopbackOrigin(files.mapValues { file in { _ in .ok(file) } })
        defer { origin.stop() }
        let server = try GifreelProcess([
            "mounts.media.origin=\(origin.url("/"))", "mounts.media.sources=gif,apng,webp", "mounts.media.negotiate=true",
            "mounts.plain.origin=\(origin.url("/"))",
        ])
        for name in ["a.png", "a.webp", "a.gif"] {
            for (suffix, type) in [(".mp4", "video/mp4"), (".jpg", "image/jpeg"), (".webp", "image/webp")] {
                let answer = try server.request("GET", "/media/\(name)\(suffix)")
                #expect(answer.status == 200 && answer["content-type"] == type, "\(name)\(suffix) \(answer.text)")
            }
            let original = try server.request("GET", "/media/\(name)", headers: ["Accept: image/*"])
            let type = ["a.png": "image/png", "a.webp": "image/webp", "a.gif": "image/gif"][name]
            #expect(original.body == files["/" + name] && original["content-type"] == type, "\(name)")
            let facts = try server.request("GET", "/media/\(name).json")
            let format = name == "a.png" ? "apng" : String(name.dropFirst(2))
            #expect(
                facts.text.contains("\"type\":\"\(format)\"") && facts.text.contains("\"/media/\(name).mp4\""), "\(facts.text)")
        }
        let unchanged = try server.request("GET", "/media/still.png")
        #expect(unchanged.status == 200 && unchanged.body == files["/still.png"] && unchanged["content-type"] == "image/png")
        let still415 = try server.request("GET", "/media/still.png.mp4")
        #expect(still415.status == 415 && still415.text.contains("not_an_animation"))
        #expect(still415.text.contains("This PNG has no animation."))
        // A mount of GIFs: the poster of a.gif, and no source of another format.
        #expect(try server.request("GET", "/plain/a.webp")["content-type"] == "image/webp")
        #expect(try server.request("GET", "/plain/a.webp.mp4").status == 404)
        #expect(try server.request("GET", "/plain/a.apng").status == 404)
        // Bytes decide, not names.
        #expect(try server.request("GET", "/mp4/\(origin.url("/a.webp"))")["content-type"] == "video/mp4")
        let uploaded = try server.request("POST", "/json", body: webp.finish())
        #expect(
            uploaded.text.contains("\"has_alpha\":true") && uploaded.text.contains("\"delays\":[0.1,0.1]"), "\(uploaded.text)")
    }

    @Test func aPurgeForgetsTheGIFToo() throws {
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }])
        defer { origin.stop() }
        let server = try GifreelProcess([
            "mounts.media.origin=\(origin.url("/"))", "mounts.media.negotiate=true", "mounts.media.on_miss=wait",
            "admin.token=secret",
        ])
        for accept in ["image/*", "video/mp4"] {
            #expect(try server.request("GET", "/media/a.gif", headers: ["Accept: \(accept)"]).status == 200)
        }
        let purged = try server.request("PURGE", "/media/a.gif", headers: ["Authorization: Bearer secret"])
        // The GIF, its video and its facts.
        #expect(purged.text.contains("\"purged\":3"), "\(purged.text)")
        #expect(try server.request("GET", "/media/a.gif")["cache-status"] == "gifreel; fwd=miss; stored")
    }

    @Test func aSourceThatIsNoGIFIsAnErrorThatVariesByAccept() throws {
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(Array("<html>".utf8)) }])
        defer { origin.stop() }
        let server = try GifreelProcess(["mounts.media.origin=\(origin.url("/"))", "mounts.media.negotiate=true"])
        for accept in ["image/*", "video/mp4"] {
            let answer = try server.request("GET", "/media/a.gif", headers: ["Accept: \(accept)"])
            #expect(answer.status == 415 && answer["vary"] == "Accept")
        }
    }

    @Test func theFactsOfAMountShowNothingOfItsOriginAndSignNothing() throws {
        let origin = try LoopbackOrigin(["/up/a.gif": { _ in .ok(gif) }])
        defer { origin.stop() }
        let server = try GifreelProcess([
            "mounts.media.origin=\(origin.url("/up/"))", "mounts.media.query=forward",
            "signing.keys=an-example-key-of-at-least-32-bytes", "mounts.media.require_signature=false",
        ])
        let facts = try server.request("GET", "/media/a.json?v=1")
        #expect(facts.status == 200 && !facts.text.contains("http:") && !facts.text.contains("/up/"), "\(facts.text)")
        #expect(!facts.text.contains("sig="))
        #expect(facts.text.contains("\"url\":\"/media/a.gif?v=1\"") && facts.text.contains("\"url\":\"/media/a.mp4?v=1\""))
        #expect(try server.request("GET", "/media/a.mp4?v=1").status == 200)
    }

    @Test func aMountForwardsVersionsToItsOriginAndCachesEachByItself() throws {
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }])
        defer { origin.stop() }
        let server = try GifreelProcess(["mounts.media.origin=\(origin.url("/"))", "mounts.media.query=forward"])
        for version in ["123", "124"] {
            for status in ["gifreel; fwd=miss; stored", "gifreel; hit", "gifreel; hit"] {
                #expect(try server.request("GET", "/media/a.mp4?v=\(version)&width=8")["cache-status"] == status)
            }
        }
        #expect(origin.requests.map(\.target).sorted() == ["/a.gif?v=123", "/a.gif?v=124"])
        let page = try server.request("GET", "/media/a.html?v=123&width=8").text
        #expect(page.contains("<source src=\"/media/a.mp4?v=123&amp;width=8\""))
    }

    @Test func theNegotiatedAnswerIsTheGIFWhereTheVideoIsLarger() throws {
        let small = GIFBuilder.animation(frames: 2, width: 4, height: 4)
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(small) }])
        defer { origin.stop() }
        let server = try GifreelProcess(["mounts.media.origin=\(origin.url("/"))", "mounts.media.negotiate=true"])
        let video = try server.request("GET", "/media/a.mp4?bframes=0")
        #expect(video["content-type"] == "video/mp4" && video.body.count > small.count)
        for status in ["gifreel; fwd=miss; stored", "gifreel; hit", "gifreel; hit"] {
            let answer = try server.request("GET", "/media/a.gif", headers: ["Accept: video/mp4"])
            #expect(answer["content-type"] == "image/gif" && answer.body == small && answer["vary"] == "Accept")
            #expect(answer["cache-status"] == status)
        }
    }

    @Test func rulesSayWhichPathsOfAMountAreOpen() throws {
        let origin = try LoopbackOrigin(["/up/public/a.gif": { _ in .ok(gif) }, "/up/secret/a.gif": { _ in .ok(gif) }])
        defer { origin.stop() }
        let server = try GifreelProcess([
            "mounts.media.origin=\(origin.url("/up/"))", "mounts.media.allow=public/,thumbs/x*",
            "sources.allow=elsewhere.example",
        ])
        #expect(try server.request("GET", "/media/public/a.mp4").status == 200)
        for path in [
            "secret/a.mp4", "public/../secret/a.mp4", "public/%2e%2e/secret/a.mp4", "public/..%2fsecret/a.mp4",
            "publicity/a.mp4",
            "..%5csecret/a.mp4", "//secret/a.mp4", "PUBLIC/a.mp4", "thumbs/a.mp4", "public%2fa.mp4",
        ] {
            #expect(try server.request("GET", "/media/\(path)").status == 404, "\(path)")
        }
        // Naming an origin opens what the mount opens, and nothing else of the host.
        #expect(try server.mp4(origin.url("/up/public/a.gif")).status == 200)
        for path in ["/up/secret/a.gif", "/up/public/../secret/a.gif", "/a.gif"] {
            #expect(try server.mp4(origin.url(path)).status == 403, "\(path)")
        }
        #expect(origin.requests.allSatisfy { $0.path == "/up/public/a.gif" })
    }

    @Test func aMountHasTimesOfItsOwn() throws {
        let origin = try LoopbackOrigin()
        defer { origin.stop() }
        origin.on("/a.gif", .ok(gif))
        origin.on("/short.gif", .ok(gif, ["Cache-Control: max-age=70"]))
        let server = try GifreelProcess([
            "mounts.media.origin=\(origin.url("/"))", "mounts.media.max_age=10m", "mounts.media.fresh_for=5d",
        ])
        for _ in 0..<2 {
            let rest = ", stale-while-revalidate=604800, stale-if-error=604800"
            #expect(try server.request("GET", "/media/a.mp4").permits(600, rest))
            // The origin's own word is the shorter one.
            #expect(try server.request("GET", "/media/short.mp4").permits(70, rest))
        }
        // Elsewhere it is as the whole service has it.
        let plain = try server.mp4(origin.url("/a.gif"))
        #expect(plain.permits(86400, ", stale-while-revalidate=604800, stale-if-error=604800"))
    }

    @Test func aMountThatCannotWorkStopsTheStart() throws {
        let origin = "mounts.a.origin=http://a.test/"
        for (settings, sentence) in [
            (["mounts.mp4.origin=http://a.test/"], "mounts.mp4 cannot be used: /mp4 is a route of the server"),
            (["mounts.a.origin=ftp://a.test/"], "it must be an http or https URL"),
            (["mounts.a.negotiate=true"], "mounts.a.origin is missing"),
            (["mounts.a.origin=http://a.test/?x=y"], "it must be a URL without a query"),
            (["mounts.a.origin=http://a.test/,http://b.test/"], "it must be one URL"),
            (["mounts.a.origin=http://a.test/x http://b.test/x"], "it must be one URL"),
            (["server.public_url=https://a.test/;https://b.test/"], "it must be one URL"),
            (["purge.hooks.a.url=http://a.test/,http://b.test/"], "it must be an http or https URL"),
            ([origin, "mounts.a.allow=a*b"], "mounts.a.allow is “a*b”; it must be a path below the origin"),
            ([origin, "mounts.a.negotiate=perhaps"], "is “perhaps”; it must be true or false"),
            ([origin, "mounts.a.on_miss=original"], "mounts.a.on_miss: original has an effect only with"),
            ([origin, "mounts.a.negotiate=true", "mounts.a.on_miss=later"], "is “later”; it must be one of wait, original"),
        ] as [([String], String)] {
            let error = #expect(throws: GifreelProcess.NotStarted.self) { try GifreelProcess(settings) }
            #expect(error?.log.contains(sentence) == true, "\(error?.log ?? "")")
        }
    }
}

@Suite("Freshness settings of mounts") struct MountTimeTests {
    @Test func theNearestMountsTimeHoldsWhereTheOriginSaysNothing() throws {
        var rules = OriginRules()
        rules.freshFor = ["https://a.test/up/": 300, "https://a.test/up/x/": 700]
        let freshFor = { (url: String, said: String) in
            rules.permission(for: try SourceURL(url), CacheDirectives(said)).freshFor
        }
        #expect(try freshFor("https://a.test/up/a.gif", "") == 300)
        #expect(try freshFor("https://a.test/up/x/a.gif", "") == 700)
        #expect(try freshFor("https://a.test/a.gif", "") == nil)
        #expect(try freshFor("https://a.test/up/a.gif", "max-age=90") == 90)
        #expect(try freshFor("https://a.test/up/a.gif", "no-cache") == 60)
        // A redirect without a lifetime limits that of its target.
        rules.defaultLifetime = 5000
        for (url, said, expected) in [("up/", 90, 90), ("up/", 9000, 300), ("", 4000, 4000), ("", 9000, 5000)]
            as [(String, Int, Int64)]
        {
            var directives = CacheDirectives("max-age=\(said)")
            directives.isLimitedByDefault = true
            #expect(rules.permission(for: try SourceURL("https://a.test/\(url)a.gif"), directives).freshFor == expected)
        }
        rules.obeyOrigin = false
        #expect(try freshFor("https://a.test/up/a.gif", "max-age=90") == 300)
    }
}
