import Fetch
import Foundation
import Renditions
import TestSupport
import SystemIO
import Testing

@testable import Web

@Suite("oEmbed documents fit the bounds of their consumer", .timeLimit(.minutes(10))) struct OEmbedTests {
    @Test(
        arguments: [
            ((400, 300), nil, nil, (400, 300)), ((400, 300), 400, 300, (400, 300)), ((400, 300), 200, nil, (200, 150)),
            ((400, 300), nil, 100, (133, 100)), ((400, 300), 200, 100, (133, 100)), ((400, 300), 100, 200, (100, 75)),
            ((400, 300), 9999, 9999, (400, 300)), ((1000, 2), 10, nil, (10, 1)), ((2, 1000), nil, 10, (1, 10)),
        ] as [((Int, Int), Int?, Int?, (Int, Int))])
    func aPictureIsReducedInItsOwnProportionsAndNeverEnlarged(
        _ size: (Int, Int), _ maxWidth: Int?, _ maxHeight: Int?, _ expected: (Int, Int)
    ) {
        #expect(OEmbed.fit(size.0, size.1, maxWidth, maxHeight) == expected)
    }

    private func query(_ pairs: KeyValuePairs<String, String>) throws(Problem) -> OEmbed.Query {
        try OEmbed.Query(pairs.map { QueryItem(name: $0.key, value: $0.value) })
    }

    @Test func aQueryNeedsAnAddressAndIgnoresWhatItDoesNotKnow() throws {
        let known = try query([
            "url": "https://a.test/x.gif", "maxwidth": "20", "format": "json", "consumer": "x", "maxwidth2": "x",
        ])
        #expect(known.url == "https://a.test/x.gif" && known.maxWidth == 20 && known.maxHeight == nil)
        #expect(try query(["url": "x", "maxheight": "1"]).maxHeight == 1)
    }

    @Test(
        arguments: [
            (["format": "json"], 400, "bad_source_url"), (["url": "a", "format": "xml"], 501, "not_implemented"),
            (["url": "a", "maxwidth": "0"], 400, "bad_option"), (["url": "a", "maxheight": "-1"], 400, "bad_option"),
            (["url": "a", "maxwidth": "1.5"], 400, "bad_option"), (["url": "a", "maxwidth": ""], 400, "bad_option"),
            (["url": "a", "maxwidth": "99999999999999999999"], 400, "bad_option"),
        ] as [([String: String], Int, String)])
    func anInvalidQueryIsRefused(_ pairs: [String: String], _ status: Int, _ code: String) {
        do throws(Problem) {
            _ = try OEmbed.Query(pairs.map { QueryItem(name: $0.key, value: $0.value) })
            Issue.record("accepted: \(pairs)")
        } catch {
            #expect(error.status == status && error.code == code)
        }
    }

    @Test(arguments: ["Daily \"News\"", nil]) func theProviderIsTheSiteThatThePageNames(_ siteName: String?) async throws {
        let gif = GIFBuilder.animation(frames: 2, width: 160, height: 120)
        try await WebFixture.run(["/a.gif": { _ in .ok(gif) }]) { settings in
            settings.policy.preview.siteName = siteName
        } _: { web async throws in
            let url = PercentEncoding.encode(web.origin.url("/a.gif"))
            let document = try await web.request("GET", "/oembed?url=\(url)").json()
            #expect(document["provider_name"] as? String == siteName ?? "Gifreel")
        }
    }

    @Test func theTitleHasNoControls() async throws {
        let gif = GIFBuilder.animation(frames: 2, width: 160, height: 120)
        try await WebFixture.run(["/a.gif": { _ in .ok(gif) }]) { settings in
            settings.policy.publicURL = "https://gifs.example"
        } _: { web async throws in
            let (source, title) = (web.origin.url("/a.gif"), PercentEncoding.encode("\u{202e}fig\u{0}.a \u{200f}<"))
            let page = "https://gifs.example/html/a.html?url=\(PercentEncoding.encode(source))&title=\(title)"
            let document = try await web.request("GET", "/oembed?url=\(PercentEncoding.encode(page))").json()
            #expect(document["title"] as? String == "\u{fffd}fig\u{fffd}.a \u{200f}<")
        }
    }

    @Test func anAddressMayNotBeGivenTwice() {
        let items = ["a", "b"].map { QueryItem(name: "url", value: $0) }
        #expect(throws: Problem.badOption("url", "is given twice")) { try OEmbed.Query(items) }
    }

    @Test func theDocumentHasThePageInItsFrameAndThePosterIfThatFits() async throws {
        let gif = GIFBuilder.animation(frames: 4, width: 160, height: 120)
        try await WebFixture.run(["/a.gif": { _ in .ok(gif) }]) { settings in
            settings.policy.publicURL = "https://gifs.example/x"
        } _: { web async throws in
            func embed(_ url: String, _ rest: String = "") async throws -> [String: Any] {
                let response = try await web.request("GET", "/oembed?url=\(PercentEncoding.encode(url))\(rest)")
                #expect(response.status == 200 && response["content-type"] == "application/json", "\(url): \(response.text)")
                return try response.json()
            }
            let source = web.origin.url("/a.gif")
            let whole = try await embed(source)
            #expect(whole["width"] as? Int == 160 && whole["height"] as? Int == 120 && whole["type"] as? String == "video")
            #expect((whole["thumbnail_url"] as? String)?.hasPrefix("https://gifs.example/x/jpg/") == true)
            #expect(whole["thumbnail_width"] as? Int == 160)
            // The last segment is a name, for consumers that judge an address by its end.
            let address = "https://gifs.example/x/html/a.html?url=\(PercentEncoding.encode(source))"
            #expect((whole["html"] as? String)?.contains("src=\"\(address)\"") == true)
            let small = try await embed(source, "&maxwidth=80")
            #expect(small["width"] as? Int == 80 && small["height"] as? Int == 60 && small["thumbnail_height"] as? Int == 60)
            let none = try await embed(source, "&maxwidth=1")
            #expect(none["thumbnail_url"] == nil && none["thumbnail_width"] == nil && none["width"] as? Int == 1)
            // The address of the page itself, of its video and of its poster lead to the same page with their options.
            for own in ["html,width=40", "mp4,width=40", "jpg,width=40"] {
                let page = try await embed("https://gifs.example/x/\(own)/\(source)")
                #expect((page["html"] as? String)?.contains("/html,width=40/") == true && page["width"] as? Int == 40, "\(own)")
            }
        }
    }

    /// Consumers pass on what a visitor has pasted.
    @Test(arguments: ["https://gifs.example", nil])
    func aPageIsFoundByAnySpellingOfItsAddress(_ publicURL: String?) async throws {
        let gif = GIFBuilder.animation(frames: 2)
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }])
        defer { origin.stop() }
        try await WebFixture.run([:]) { settings in
            settings.policy.publicURL = publicURL
            settings.policy.mounts = ["media": Mount(origin: try SourceURL(origin.url("/")))]
        } _: { web async throws in
            for start in ["https://gifs.example", "http://gifs.example", "HTTPS://GIFS.example", "https://gifs.example:443"] {
                let url = PercentEncoding.encode("\(start)/media/a.html?width=20&fbclid=1&utm_source=x#top")
                let response = try await web.request("GET", "/oembed?url=\(url)", headers: ["Host: gifs.example"])
                let html = try #require(try response.json()["html"] as? String, "\(start): \(response.text)")
                let base = publicURL ?? "\(start.prefix { $0 != ":" }.lowercased())://gifs.example"
                #expect(html.contains("src=\"\(base)/media/a.html?width=20\""), "\(start): \(html)")
            }
        }
    }

    @Test func theDocumentMayBeStoredAsLongAsThePage() async throws {
        let gif = GIFBuilder.animation(frames: 2)
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }])
        defer { origin.stop() }
        let keys = SigningKeys(["an-example-key-of-at-least-32-bytes"])
        let source = try SourceURL(origin.url("/a.gif"))
        let configure: (inout WebFixture.Settings) throws -> Void = { settings in
            var mount = Mount(origin: try SourceURL(origin.url("/")))
            mount.maxAge = 30
            settings.policy.mounts = ["media": mount]
            settings.policy.signingKeys = keys
            settings.policy.head.maxAge = 600
            settings.policy.publicURL = "https://gifs.example"
        }
        try await WebFixture.run([:], configure) { web async throws in
            func age(_ url: String) async throws -> Int {
                let response = try await web.request("GET", "/oembed?url=\(PercentEncoding.encode(url))")
                return try #require(try response.json()["cache_age"] as? Int, "\(response.text)")
            }
            #expect(try await age(source.canonical) == 600)
            #expect(try await age("https://gifs.example/media/a.html") == 30)
            let expires = Int64(currentSeconds() + 100)
            let signed = try #require(keys.target("html", of: source, expires: expires))
            // A signature does not cover what other sites append to a link.
            for link in [signed, "\(signed)?fbclid=1"] {
                let left = try await age("https://gifs.example\(link)")
                #expect((1...100).contains(left))
            }
        }
    }

    @Test func aSignatureIsNotExtendedToOtherRenditions() async throws {
        let gif = GIFBuilder.animation(frames: 2, width: 400, height: 300)
        let keys = SigningKeys(["an-example-key-of-at-least-32-bytes"])
        try await WebFixture.run(["/a.gif": { _ in .ok(gif) }]) { settings in
            settings.policy.signingKeys = keys
            settings.policy.requiresSignature = true
            settings.policy.publicURL = "https://gifs.example"
        } _: { web async throws in
            let source = try SourceURL(web.origin.url("/a.gif"))
            func embed(_ format: Rendition.Format, _ rest: String = "") async throws -> RawHTTPResponse {
                let target = try #require(keys.target(format.rawValue, of: source))
                let url = PercentEncoding.encode("https://gifs.example\(target)")
                return try await web.request("GET", "/oembed?url=\(url)\(rest)")
            }
            for format in [Rendition.Format.jpg, .mp4] {
                let response = try await embed(format)
                #expect(response.status == 404 && response.code == "not_found", "\(response.text)")
            }
            // Thumbnails have few sizes.
            for (bounds, width) in [
                ("", 400), ("&maxwidth=399", 320), ("&maxwidth=320", 320), ("&maxwidth=319", 160),
                ("&maxwidth=399&maxheight=239", 160), ("&maxheight=240", 320), ("&maxwidth=159", nil), ("&maxheight=100", nil),
            ] as [(String, Int?)] {
                let document = try await embed(.html, bounds).json()
                #expect(document["thumbnail_width"] as? Int == width, "\(bounds): \(document)")
                let address = document["thumbnail_url"] as? String
                #expect((address == nil) == (width == nil), "\(bounds)")
                guard let address else { continue }
                let picture = try await web.request("GET", String(address.dropFirst("https://gifs.example".count)))
                #expect(picture.status == 200, "\(address)")
            }
        }
    }

    @Test func theThumbnailOfASignedPageHasTheWidthOfItsAddress() async throws {
        let gif = GIFBuilder.animation(frames: 2, width: 300, height: 200)
        let keys = SigningKeys(["an-example-key-of-at-least-32-bytes"])
        try await WebFixture.run(["/a.gif": { _ in .ok(gif) }]) { settings in
            settings.policy.signingKeys = keys
            settings.policy.requiresSignature = true
            settings.policy.publicURL = "https://gifs.example"
        } _: { web async throws in
            let source = try SourceURL(web.origin.url("/a.gif"))
            let cover = [("fit", "cover"), ("height", "180"), ("width", "240")].map { QueryItem(name: $0.0, value: $0.1) }
            for (options, bounds, size, height) in [
                ([], "&maxwidth=200", (160, 107), nil), ([], "&maxwidth=200&maxheight=107", (160, 107), nil),
                // 106.67 lines are rounded to 107.
                ([], "&maxwidth=160&maxheight=106", nil, nil),
                // A picture that is cropped keeps its aspect ratio only with both sides.
                (cover, "&maxwidth=200", (160, 120), "height=120"),
            ] as [([QueryItem], String, (Int, Int)?, String?)] {
                let target = try #require(keys.target("html", options, of: source))
                let url = PercentEncoding.encode("https://gifs.example\(target)")
                let document = try await web.request("GET", "/oembed?url=\(url)\(bounds)").json()
                #expect(document["thumbnail_width"] as? Int == size?.0, "\(bounds): \(document)")
                #expect(document["thumbnail_height"] as? Int == size?.1, "\(bounds): \(document)")
                let address = document["thumbnail_url"] as? String
                #expect(address?.contains("width=160") == size.map { _ in true }, "\(document)")
                #expect(address?.contains(height ?? "height=") ?? false == (height != nil), "\(document)")
            }
        }
    }

    @Test func theFrameHasNoCallback() async throws {
        let gif = GIFBuilder.animation(frames: 2)
        try await WebFixture.run(["/a.gif": { _ in .ok(gif) }]) { settings in
            settings.policy.publicURL = "https://gifs.example"
        } _: { web async throws in
            let source = web.origin.url("/a.gif")
            let page = "https://gifs.example/html,callback=https%3A%2F%2Fhook.test%2Fx,width=40/\(source)"
            let response = try await web.request("GET", "/oembed?url=\(PercentEncoding.encode(page))")
            let html = try #require(try response.json()["html"] as? String, "\(response.text)")
            let address = "https://gifs.example/html,width=40/a.html?url=\(PercentEncoding.encode(source))"
            #expect(html.contains("src=\"\(address)\"") && !html.contains("callback"))
        }
    }

    @Test func aSourceThatCannotBeConvertedIsAProblemAndNotItself() async throws {
        // The signature and a canvas, and no frame.
        let broken = Array(GIFBuilder.animation(frames: 2).prefix(40))
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(broken) }])
        defer { origin.stop() }
        try await WebFixture.run([:]) { settings in
            var mount = Mount(origin: try SourceURL(origin.url("/")))
            mount.onError = .original
            settings.policy.mounts = ["media": mount]
            settings.policy.publicURL = "https://gifs.example"
        } _: { web async throws in
            for own in ["html,on_error=original/\(origin.url("/a.gif"))", "media/a.html", "media/a.mp4"] {
                let url = PercentEncoding.encode("https://gifs.example/\(own)")
                let response = try await web.request("GET", "/oembed?url=\(url)")
                #expect(response.status == 422 && response.code == "corrupt_gif", "\(own): \(response.status)")
                #expect(response["content-type"] == "application/problem+json", "\(own)")
            }
        }
    }

    @Test func anAddressThatIsNoPageOfThisServerIsRefused() async throws {
        try await WebFixture.run { web async throws in
            for (url, code) in [
                ("nonsense", "bad_source_url"), ("ftp://a.test/x.gif", "bad_source_url"),
                ("http://127.0.0.1/json/https://a.test/x.gif", "not_found"), ("http://127.0.0.1/", "not_found"),
                ("http://127.0.0.1/object/\(String(repeating: "0", count: 64)).mp4", "not_found"),
            ] {
                let response = try await web.request("GET", "/oembed?url=\(PercentEncoding.encode(url))")
                #expect(response.code == code, "\(url): \(response.text)")
            }
        }
    }
}
