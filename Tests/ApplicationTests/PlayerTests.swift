import Fetch
import Foundation
import Renditions
import SystemIO
import TestSupport
import Testing

@testable import Web

@Suite("Player pages and oEmbed over a socket", .timeLimit(.minutes(10))) struct PlayerTests {
    private let gif = GIFBuilder.animation(frames: 6, width: 33, height: 21, delay: 7)

    private func document(_ answer: RawHTTPResponse) throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: Data(answer.body)) as? [String: Any])
    }

    @Test func aPageNamesItsVideoBeforeTheVideoIsEncoded() throws {
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }])
        defer { origin.stop() }
        let server = try GifreelProcess(["server.public_url=https://gifs.example"])
        let page = try server.request("GET", "/html/\(origin.url("/a.gif"))")
        #expect(page.status == 200 && page["content-type"] == "text/html; charset=utf-8")
        #expect(page["cache-status"] == "gifreel; fwd=miss; stored")
        #expect(page.permits(86400, ", stale-while-revalidate=604800, stale-if-error=604800"))
        #expect(page.text.contains("<video id=\"video\" autoplay loop muted playsinline "))
        #expect(page.text.contains("poster=\"/jpg/\(origin.url("/a.gif"))\" width=\"34\" height=\"22\""))
        #expect(page.text.contains("<title>a.gif</title>"))
        let policy = try #require(page["content-security-policy"])
        #expect(policy.hasPrefix("default-src 'none'; ") && policy.contains("media-src 'self'") && !policy.contains("unsafe"))
        // Only the facts are stored.
        #expect(server.storedObjects().isEmpty)
        let again = try server.request("GET", "/html/\(origin.url("/a.gif"))")
        #expect(again["cache-status"] == "gifreel; hit" && again.body == page.body && origin.count("/a.gif") == 1)
        let tag = try #require(page["etag"])
        #expect(try server.request("GET", "/html/\(origin.url("/a.gif"))", headers: ["If-None-Match: \(tag)"]).status == 304)
        let video = try server.mp4(origin.url("/a.gif"))
        #expect(try MP4Boxes(video.body).width == 34)
    }

    @Test func loopCountsOfGIFsBecomePlays() throws {
        var once = GIFBuilder(width: 20, height: 20)
        once.add(color: 1)
        once.add(color: 2)
        var thrice = GIFBuilder(width: 20, height: 20)
        thrice.addLoop(2)
        thrice.add(color: 1)
        thrice.add(color: 2)
        let files = [once.finish(), thrice.finish()]
        let origin = try LoopbackOrigin(["/once.gif": { _ in .ok(files[0]) }, "/thrice.gif": { _ in .ok(files[1]) }])
        defer { origin.stop() }
        let server = try GifreelProcess()
        let first = try server.request("GET", "/html/\(origin.url("/once.gif"))").text
        #expect(first.contains("autoplay muted") && first.contains(" data-plays=\"1\""))
        let second = try server.request("GET", "/html/\(origin.url("/thrice.gif"))").text
        #expect(second.contains("autoplay loop muted") && second.contains(" data-plays=\"3\""))
    }

    @Test func optionsOfAPageAreThoseOfWhatItShows() throws {
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }])
        defer { origin.stop() }
        let server = try GifreelProcess()
        let page = try server.request("GET", "/html,width=16,speed=2,start=0.2/\(origin.url("/a.gif"))").text
        #expect(page.contains("<source src=\"/mp4,speed=2,start=0.2,width=16/\(origin.url("/a.gif"))\""))
        // 0.2 s is in the third frame of 0.07 s.
        #expect(page.contains("poster=\"/jpg,frame=2,width=16/\(origin.url("/a.gif"))\" width=\"16\" height=\"10\""))
        let video = try server.request("GET", "/mp4,speed=2,start=0.2,width=16/\(origin.url("/a.gif"))")
        #expect(try MP4Boxes(video.body).width == 16 && MP4Boxes(video.body).height == 10)
        #expect(try server.request("GET", "/html,nonsense=1/\(origin.url("/a.gif"))").status == 400)
    }

    @Test func pagesUseTheSchemeThatATrustedProxyTells() throws {
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(GIFBuilder.animation()) }])
        defer { origin.stop() }
        let target = "/html/\(origin.url("/a.gif"))"
        let trusting = try GifreelProcess(["server.trusted_proxies=127.0.0.1"])
        let secure = try trusting.request("GET", target, headers: ["X-Forwarded-Proto: https", "X-Forwarded-For: 192.0.2.1"])
        #expect(secure.text.contains("og:video:secure_url"))
        let other = try GifreelProcess([])
        let plain = try other.request("GET", target, headers: ["X-Forwarded-Proto: https", "X-Forwarded-For: 192.0.2.1"])
        #expect(plain.status == 200 && !plain.text.contains("og:video:secure_url"))
    }

    @Test func aMountHasPages() throws {
        let origin = try LoopbackOrigin(["/up/a.gif": { _ in .ok(gif) }])
        defer { origin.stop() }
        let server = try GifreelProcess(["mounts.media.origin=\(origin.url("/up/"))", "sources.allow=nothing.invalid"])
        let page = try server.request("GET", "/media/a.html?quality=30")
        #expect(page.status == 200 && page.text.contains("<source src=\"/media/a.mp4?quality=30\""))
        #expect(try server.request("GET", "/media/a.mp4?quality=30").status == 200)
        #expect(try server.request("GET", "/media/a.jpg?quality=30")["content-type"] == "image/jpeg")
    }

    @Test func errorsOfAPageAreThoseOfItsSource() throws {
        let origin = try LoopbackOrigin(["/page.gif": { _ in .ok(Array("<!doctype html><html></html>".utf8)) }])
        defer { origin.stop() }
        let server = try GifreelProcess()
        for (path, status) in [("/none.gif", 404), ("/page.gif", 415)] {
            let answer = try server.request("GET", "/html/\(origin.url(path))")
            #expect(answer.status == status && answer["content-type"] == "application/problem+json")
            #expect(answer["vary"] == "Accept")
        }
        let upload = try server.request("POST", "/html", body: gif)
        #expect(upload.status == 400 && upload.text.contains("URL"))
    }

    @Test func errorsOfAPageArePagesForClientsThatPreferHTML() throws {
        let origin = try LoopbackOrigin(["/page.gif": { _ in .ok(Array("<!doctype html><html></html>".utf8)) }])
        defer { origin.stop() }
        let server = try GifreelProcess(["mounts.media.origin=\(origin.url("/"))"])
        let browser = ["Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"]
        for (target, status, code) in [
            ("/html/\(origin.url("/none.gif"))", 404, "source_not_found"),
            ("/html/\(origin.url("/page.gif"))", 415, "not_an_animation"), ("/html,speed=x/http://a.test/", 400, "bad_option"),
            ("/html", 400, "bad_source_url"), ("/media/none.html", 404, "source_not_found"),
        ] {
            for _ in 0..<2 {
                let answer = try server.request("GET", target, headers: browser)
                #expect(answer.status == status && answer["content-type"] == "text/html; charset=utf-8", "\(target)")
                #expect(answer.text.contains("<code>\(code)</code>") && answer["vary"] == "Accept", "\(target)")
                #expect(answer["content-security-policy"]?.hasPrefix("default-src 'none'; ") == true)
            }
            let json = try server.request("GET", target, headers: ["Accept: application/json, text/html;q=0.5"])
            #expect(json.status == status && json["content-type"] == "application/problem+json" && json["vary"] == "Accept")
        }
        let video = try server.request("GET", "/mp4/\(origin.url("/none.gif"))", headers: browser)
        #expect(video["content-type"] == "application/problem+json" && video["vary"] == nil)
    }

    @Test func aThumbnailIsWithinTheBoundsOfOEmbed() throws {
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }])
        defer { origin.stop() }
        let server = try GifreelProcess()
        let target = "/oembed?url=\(PercentEncoding.encode(origin.url("/a.gif")))"
        for (bounds, width, height) in [
            ("&maxwidth=11", 11, 7), ("&maxheight=7&maxwidth=30", 11, 7), ("&maxwidth=100", 33, 21),
        ] {
            let found = try document(server.request("GET", target + bounds))
            #expect(found["thumbnail_width"] as? Int == width && found["thumbnail_height"] as? Int == height, "\(found)")
            let address = try #require(found["thumbnail_url"] as? String)
            let picture = try server.request("GET", String(address.dropFirst("http://127.0.0.1".count)))
            // The frame header of a baseline JPEG: height and width are bytes 5 to 8 after its marker.
            let marker = try #require(picture.body.indices.first { picture.body[$0...].starts(with: [0xff, 0xc0]) })
            #expect(Array(picture.body[marker + 5..<marker + 9]) == [0, UInt8(height), 0, UInt8(width)], "\(address)")
        }
        let none = try document(server.request("GET", target + "&maxwidth=1"))
        #expect(none["thumbnail_url"] == nil && none["width"] as? Int == 1)
    }

    @Test func oEmbedTakesTheAddressesOfAMount() throws {
        let origin = try LoopbackOrigin(["/up/a.gif": { _ in .ok(gif) }])
        defer { origin.stop() }
        let server = try GifreelProcess(["mounts.media.origin=\(origin.url("/up/"))", "mounts.media.negotiate=true"])
        for path in ["a.gif", "a.mp4", "a.html", "a.jpg"] {
            let address = "http://127.0.0.1/media/\(path)?width=20"
            let answer = try server.request("GET", "/oembed?url=\(PercentEncoding.encode(address))")
            #expect(answer.status == 200 && answer["vary"] == nil, "\(answer.text)")
            let found = try document(answer)
            #expect((found["html"] as? String)?.contains("src=\"http://127.0.0.1/media/a.html?width=20\"") == true, "\(found)")
            #expect(found["thumbnail_url"] as? String == "http://127.0.0.1/media/a.jpg?width=20")
        }
        for path in ["/media/a.json", "/metrics", "/media/a.exe"] {
            #expect(try server.request("GET", "/oembed?url=\(PercentEncoding.encode("http://127.0.0.1" + path))").status == 404)
        }
    }

    @Test func errorsOfOEmbedAreLoggedWithTheSourceAndTheRequest() throws {
        let origin = try LoopbackOrigin()
        defer { origin.stop() }
        let server = try GifreelProcess()
        for target in ["/oembed?url=\(PercentEncoding.encode(origin.url("/none.gif")))", "/html/\(origin.url("/other.gif"))"] {
            let id = "the-id-\(target.prefix(5).dropFirst())"
            #expect(try server.request("GET", target, headers: ["X-Request-Id: \(id)"]).status == 404)
            try blockUntil("the expected answer") {
                server.log.split(separator: "\n").contains { line in
                    line.contains("source_not_found") && line.contains("source_host=127.0.0.1") && line.contains(id)
                }
            }
        }
    }

    @Test func oEmbedTellsHowAPageIsEmbedded() throws {
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }])
        defer { origin.stop() }
        let server = try GifreelProcess()
        let address = "http://127.0.0.1/html,width=20/\(origin.url("/a.gif"))"
        let target = "/oembed?url=\(PercentEncoding.encode(address))"
        let answer = try server.request("GET", target + "&format=json")
        #expect(answer.status == 200 && answer["content-type"] == "application/json")
        let found = try document(answer)
        #expect(found["type"] as? String == "video" && found["version"] as? String == "1.0")
        #expect(found["width"] as? Int == 20 && found["height"] as? Int == 14 && found["title"] as? String == "a.gif")
        let source = PercentEncoding.encode(origin.url("/a.gif"))
        let frame = "<iframe src=\"http://127.0.0.1/html,width=20/a.html?url=\(source)\" width=\"20\" height=\"14\""
        #expect((found["html"] as? String)?.hasPrefix(frame) == true)
        let thumbnail = try #require(found["thumbnail_url"] as? String)
        #expect(thumbnail == "http://127.0.0.1/jpg,width=20/a.jpg?url=\(source)")
        #expect(try server.request("GET", String(thumbnail.dropFirst("http://127.0.0.1".count))).status == 200)
        let small = try document(server.request("GET", target + "&maxwidth=10&maxheight=100"))
        #expect(small["width"] as? Int == 10 && small["height"] as? Int == 7)
        // The GIF's own address stands for its page.
        let plain = try document(server.request("GET", "/oembed?url=\(PercentEncoding.encode(origin.url("/a.gif")))"))
        #expect((plain["html"] as? String)?.contains("http://127.0.0.1/html/a.html?url=\(source)\"") == true)
        #expect(try server.request("GET", target + "&format=xml").status == 501)
        #expect(try server.request("GET", "/oembed").status == 400)
        #expect(try server.request("GET", "/oembed?url=\(PercentEncoding.encode("http://127.0.0.1/healthz"))").status == 404)
        let none = try server.request("GET", "/oembed?url=\(PercentEncoding.encode(origin.url("/none.gif")))")
        #expect(none.status == 404)
    }

    @Test func aSignedPageShowsWhatIsSignedLikewise() throws {
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }])
        defer { origin.stop() }
        let key = "0123456789abcdef0123456789abcdef"
        let server = try GifreelProcess(["signing.keys=\(key)", "mounts.media.origin=\(origin.url("/"))"])
        let home = try server.request("GET", "/")
        #expect(home.status == 200 && home.text.contains("Signed requests only") && !home.text.contains("<form"))
        let unsigned = "/html/\(origin.url("/a.gif"))"
        #expect(try server.request("GET", unsigned).status == 403)
        #expect(try server.request("GET", "/oembed?url=\(PercentEncoding.encode(origin.url("/a.gif")))").status == 403)
        #expect(try server.request("GET", "/oembed?url=\(PercentEncoding.encode("http://127.0.0.1" + unsigned))").status == 403)

        let signer = SigningKeys([key])
        let options = [QueryItem(name: "width", value: "20")]
        let source = try SourceURL(origin.url("/a.gif"))
        let target = try #require(signer.target("html", options, of: source, expires: 99_999_999_999))
        try expectPlayable(server, try server.request("GET", target))
        let embed = try document(server.request("GET", "/oembed?url=\(PercentEncoding.encode("http://127.0.0.1" + target))"))
        #expect((embed["html"] as? String)?.contains("sig=") == true)
        let thumbnail = try #require(embed["thumbnail_url"] as? String)
        #expect(try server.request("GET", String(thumbnail.dropFirst("http://127.0.0.1".count))).status == 200)

        let query = try #require(signer.signed("html", options, of: source, expires: nil)).map { "\($0.name)=\($0.value)" }
        let mounted = try server.request("GET", "/media/a.html?" + query.joined(separator: "&"))
        #expect(mounted.text.contains("src=\"/media/a.mp4?width=20&amp;sig="))
        try expectPlayable(server, mounted)
    }

    /// That the video and the poster which a page shows are answered.
    private func expectPlayable(_ server: GifreelProcess, _ page: RawHTTPResponse) throws {
        #expect(page.status == 200)
        for (mark, type) in [("<source src=\"", "video/mp4"), (" poster=\"", "image/jpeg")] {
            let start = try #require(page.text.firstRange(of: mark)).upperBound
            let target = String(page.text[start...].prefix { $0 != "\"" }).replacing("&amp;", with: "&")
            let answer = try server.request("GET", target)
            #expect(answer.status == 200 && answer["content-type"] == type, "\(target)")
        }
    }
}
