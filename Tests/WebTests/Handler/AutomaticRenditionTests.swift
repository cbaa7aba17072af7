import Fetch
import Media
import Synchronization
import TestSupport
import Testing

@testable import Renditions
@testable import Web

@Suite("/auto selects a rendition of any source by Accept", .timeLimit(.minutes(10))) struct AutomaticRenditionTests {
    /// Larger than all of its renditions: decoders skip what is behind the trailer.
    private static let gif = GIFBuilder.animation(frames: 8, width: 80, height: 60) + [UInt8](repeating: 0, count: 50_000)
    /// The same with a transparent background.
    private static let sticker: [UInt8] = {
        var builder = GIFBuilder(width: 40, height: 30)
        builder.addLoop(0)
        for index in 0..<4 {
            var pixels = [UInt8](repeating: 0, count: 1200)
            for place in 0..<100 { pixels[(place * 7 + index * 40) % 1200] = 2 }
            builder.add(.init(width: 40, height: 30, pixels: pixels)) {
                $0.transparent = 0
                $0.disposal = 2
            }
        }
        return builder.finish() + [UInt8](repeating: 0, count: 50_000)
    }()
    /// Played three times.
    private static let ending: [UInt8] = {
        var builder = GIFBuilder(width: 40, height: 30)
        builder.addLoop(2)
        for color in UInt8(0)..<4 { builder.add(color: color) }
        return builder.finish() + [UInt8](repeating: 0, count: 50_000)
    }()
    private static let chromium = "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"
    private static let safari =
        "image/webp,image/avif,image/jxl,image/heic,image/heic-sequence,video/*;q=0.8,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5"
    /// WebKitGTK and WPE, and Safari 16.
    private static let webKit =
        "image/webp,image/avif,video/*;q=0.8,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5"
    private static let original = "gifreel; fwd=miss; detail=original"

    private func run(
        _ files: [String: [UInt8]], _ configure: (inout WebFixture.Settings) throws -> Void = { _ in },
        _ body: (WebFixture) async throws -> Void
    ) async throws {
        try await WebFixture.run(files.mapValues { bytes in { _ in .ok(bytes) } }, configure, body)
    }

    /// Requests a target until it is answered from the cache. Every answer before that is the source.
    private func settled(
        _ web: WebFixture, _ target: String, _ accept: String, source: [UInt8], type: String
    ) async throws -> RawHTTPResponse {
        var response = try await web.request("GET", target, headers: ["Accept: \(accept)"])
        try await waitUntil("\(type) at \(target)") {
            response = try await web.request("GET", target, headers: ["Accept: \(accept)"])
            if response["cache-status"] == "gifreel; hit", response["content-type"] == type { return true }
            try #require(response.body == source || response["content-type"] == type)
            return false
        }
        return response
    }

    @Test(.enabled(if: Rendition.Format.named("avif") != nil))
    func theSourceIsTheAnswerUntilThereIsTheRendition() async throws {
        try await run(["/a.gif": Self.gif]) { web async throws in
            let url = web.origin.url("/a.gif")
            let encoded = url.replacing(":", with: "%3A").replacing("/", with: "%2F")
            let first = try await web.request("GET", "/auto/\(url)", headers: ["Accept: \(Self.chromium)"])
            #expect(first.status == 200 && first.body == Self.gif && first["cache-status"] == Self.original)
            #expect(first["cache-control"] == "no-cache" && first["vary"] == "Accept")
            #expect(first["content-disposition"] == "inline; filename=\"a.gif\"")
            let hit = try await settled(
                web, "/auto/\(url)", Self.chromium, source: Self.gif, type: "image/avif")
            #expect(hit["vary"] == "Accept" && hit["content-disposition"] == "inline; filename=\"a.avif\"")
            // One fetch, whatever the form of the address.
            for target in ["/auto?url=\(encoded)", "/auto/\(encoded)", "/auto/a.gif?url=\(encoded)"] {
                let same = try await web.request("GET", target, headers: ["Accept: \(Self.chromium)"])
                #expect(same["etag"] == hit["etag"] && same["vary"] == "Accept", "\(target)")
            }
            #expect(web.origin.count("/a.gif") == 1)
            let tag = try #require(hit["etag"])
            for (fields, status) in [(["If-None-Match: \(tag)"], 304), (["Range: bytes=0-9"], 206), ([], 200)] {
                let part = try await web.request("GET", "/auto/\(url)", headers: ["Accept: \(Self.chromium)"] + fields)
                #expect(part.status == status && part["vary"] == "Accept")
            }
            let head = try await web.request("HEAD", "/auto/\(url)", headers: ["Accept: \(Self.chromium)"])
            #expect(head.status == 200 && head.body.isEmpty && head["content-type"] == "image/avif")
            // A client that names no format has the source, which was stored or is fetched.
            let plain = try await web.request("GET", "/auto/\(url)", headers: ["Accept: */*"])
            #expect(plain.body == Self.gif && plain["content-type"] == "image/gif")
            // Safari's video has the options that the target states.
            let small = try await settled(
                web, "/auto,width=40/\(url)", Self.safari, source: Self.gif, type: "video/mp4")
            #expect(try await web.request("GET", "/mp4,bframes=0,width=40/\(url)")["etag"] == small["etag"])
        }
    }

    @Test func aVisitorOfAPageWithManyNewImagesSeesTheirSources() async throws {
        let gate = try LoopbackGate()
        defer { gate.open() }
        let names = (0..<4).map { "/\($0).gif" }
        let head = Array("HTTP/1.1 200 OK\r\nContent-Length: \(Self.gif.count)\r\nConnection: close\r\n\r\n".utf8)
        let slow: LoopbackOrigin.Handler = { _ in LoopbackAnswer(steps: [.wait(until: gate), .send(head + Self.gif)]) }
        try await WebFixture.run(Dictionary(uniqueKeysWithValues: names.map { ($0, slow) }), { $0.jobs = 1 }) {
            web async throws in
            try await withThrowingTaskGroup(of: RawHTTPResponse.self) { group in
                for name in names {
                    group.addTask {
                        try await web.request("GET", "/auto/\(web.origin.url(name))", headers: ["Accept: video/mp4"])
                    }
                }
                // The server has no slot left for most of the conversions.
                try await waitUntil("all sources to be fetched") { names.allSatisfy { web.origin.count($0) == 1 } }
                gate.open()
                for try await response in group {
                    #expect(response.status == 200 && response.body == Self.gif)
                    #expect(response["cache-control"] == "no-cache" && response["vary"] == "Accept")
                }
            }
        }
    }

    @Test func belowAMountTheExtensionIsAuto() async throws {
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(Self.gif) }, "/b.gif": { _ in .ok(Self.gif) }])
        defer { origin.stop() }
        try await run([:]) { settings in
            var all = Mount(origin: try SourceURL(origin.url("/")))
            settings.policy.mounts["m"] = all
            all.sources = [.gif, .webp]
            settings.policy.mounts["n"] = all
        } _: { web async throws in
            for target in ["/m/a.auto", "/n/b.gif.auto"] {
                let response = try await web.request("GET", target, headers: ["Accept: video/mp4"])
                #expect(response.body == Self.gif && response["cache-status"] == Self.original, "\(target)")
                #expect(response["vary"] == "Accept")
                _ = try await settled(web, target, "video/mp4", source: Self.gif, type: "video/mp4")
            }
            #expect(try await web.request("GET", "/m/a.auto?width=0")["vary"] == "Accept")
            #expect(try await web.request("GET", "/m/a.auto?on_miss=wait").code == "bad_option")
        }
    }

    @Test func aTransparentSourceIsNoVideo() async throws {
        try await run(["/a.gif": Self.sticker, "/b.gif": Self.sticker]) { web async throws in
            let target = "/auto/\(web.origin.url("/a.gif"))"
            var types: Set<String> = []
            try await waitUntil("a picture with alpha") {
                let response = try await web.request("GET", target, headers: ["Accept: \(Self.safari)"])
                types.insert(try #require(response["content-type"]))
                return response["cache-status"] == "gifreel; hit" && response["content-type"] != "image/gif"
            }
            #expect(!types.contains("video/mp4") && types.count == 2)
            // A video that was made by name does not change that.
            _ = try await web.request("GET", "/mp4/\(web.origin.url("/b.gif"))")
            let named = "/auto/\(web.origin.url("/b.gif"))"
            try await waitUntil("a picture with alpha") {
                let response = try await web.request("GET", named, headers: ["Accept: \(Self.safari)"])
                #expect(response["content-type"]?.hasPrefix("image/") == true)
                return response["content-type"] != "image/gif"
            }
        }
    }

    /// It shows only the first picture of a video in `<img>`.
    @Test func webKitGTKGetsASequence() async throws {
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(Self.gif) }, "/b.gif": { _ in .ok(Self.ending) }])
        defer { origin.stop() }
        let sequence = Rendition.Format.named("avif") != nil ? "image/avif" : "image/webp"
        try await run(["/a.gif": Self.gif]) { settings in
            var mount = Mount(origin: try SourceURL(origin.url("/")))
            (mount.negotiates, mount.onMiss) = (true, .wait)
            settings.policy.mounts["m"] = mount
        } _: { web async throws in
            let target = "/auto/\(web.origin.url("/a.gif"))"
            _ = try await settled(web, target, Self.webKit, source: Self.gif, type: sequence)
            _ = try await settled(web, "/m/a.gif", Self.webKit, source: Self.gif, type: sequence)
            _ = try await settled(web, "/m/b.gif", Self.webKit, source: Self.ending, type: "image/webp")
            _ = try await settled(web, target, Self.safari, source: Self.gif, type: "video/mp4")
        }
    }

    /// In `<img>`, WebKit shows each picture for the time from its own decoding to the next.
    @Test func theVideoForSafariHasNoBFrames() async throws {
        try await run(["/a.gif": Self.gif]) { web async throws in
            let url = web.origin.url("/a.gif")
            let video = try await settled(web, "/auto/\(url)", Self.safari, source: Self.gif, type: "video/mp4")
            #expect(try !MP4Boxes(video.body).hasOffsets)
            let named = try await web.request("GET", "/mp4,bframes=0/\(url)")
            #expect(named["etag"] == video["etag"] && named["cache-status"] == "gifreel; hit")
            #expect(try MP4Boxes(try await web.request("GET", "/mp4/\(url)").body).hasOffsets)
        }
    }

    /// In `<img>`, WebKit repeats a video and an AVIF without end.
    @Test func aSourceThatEndsIsAWebPForSafari() async throws {
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(Self.ending) }])
        defer { origin.stop() }
        try await run(["/a.gif": Self.ending, "/b.gif": Self.ending]) { settings in
            var mount = Mount(origin: try SourceURL(origin.url("/")))
            (mount.negotiates, mount.onMiss) = (true, .wait)
            settings.policy.mounts["m"] = mount
        } _: { web async throws in
            // A video that was made by name does not change that.
            _ = try await web.request("GET", "/mp4/\(web.origin.url("/b.gif"))")
            for target in ["/auto/\(web.origin.url("/a.gif"))", "/auto/\(web.origin.url("/b.gif"))", "/m/a.gif"] {
                let picture = try await settled(web, target, Self.safari, source: Self.ending, type: "image/webp")
                #expect(picture.body.starts(with: "RIFF".utf8) && picture["vary"] == "Accept", "\(target)")
                // Caches in front add the GIF to what Safari names.
                let reduced = try await web.request(
                    "GET", target, headers: ["Accept: video/mp4,image/avif,image/webp,image/gif"])
                #expect(reduced["etag"] == picture["etag"], "\(target)")
            }
            // A player that names no image repeats the video as its page says.
            let target = "/auto/\(web.origin.url("/a.gif"))"
            _ = try await settled(web, target, "video/mp4", source: Self.ending, type: "video/mp4")
        }
    }

    @Test func whetherTheClientWaitsOrNotATransparentSourceIsNoVideo() async throws {
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(Self.sticker) }])
        defer { origin.stop() }
        try await run([:]) { settings in
            var mount = Mount(origin: try SourceURL(origin.url("/")))
            (mount.negotiates, mount.onMiss) = (true, .wait)
            settings.policy.mounts["m"] = mount
        } _: { web async throws in
            for _ in 0..<3 {
                let response = try await web.request("GET", "/m/a.gif", headers: ["Accept: \(Self.safari)"])
                #expect(response.status == 200 && response["content-type"]?.hasPrefix("image/") == true)
            }
            #expect(origin.count("/a.gif") <= 2)
        }
    }

    @Test func aVideoThatWasMadeByNameIsTheAnswerOnceTheFactsAreKnown() async throws {
        try await run(["/a.gif": Self.gif]) { web async throws in
            let video = try await web.request("GET", "/mp4,bframes=0/\(web.origin.url("/a.gif"))")
            let first = try await web.request("GET", "/auto/\(web.origin.url("/a.gif"))", headers: ["Accept: video/mp4"])
            #expect(first["content-type"] == "video/mp4" && first.body == video.body)
            // Nothing is fetched again but for the facts.
            #expect(web.origin.count("/a.gif") <= 2)
        }
    }

    @Test(arguments: ["still", "tiny", "small"]) func whatSavesTooLittleStays(_ kind: String) async throws {
        let gif =
            switch kind {
            case "still": GIFBuilder.animation(frames: 1, width: 80, height: 60) + [UInt8](repeating: 0, count: 50_000)
            case "tiny": GIFBuilder.animation(frames: 3, width: 4, height: 40) + [UInt8](repeating: 0, count: 50_000)
            default: GIFBuilder.animation(frames: 3, width: 16, height: 18)
            }
        try await run(["/a.gif": gif]) { web async throws in
            let target = "/auto/\(web.origin.url("/a.gif"))"
            var isSettled = false
            try await waitUntil("the source in the cache") {
                let response = try await web.request("GET", target, headers: ["Accept: \(Self.chromium)"])
                #expect(response.body == gif)
                isSettled = response["cache-status"] == "gifreel; hit" && response["etag"] != nil
                return isSettled
            }
            #expect(web.origin.count("/a.gif") == 1)
            let facts = try await web.request("GET", "/json/\(web.origin.url("/a.gif"))").json()
            let page = try #require(facts["page"] as? [String: Any])
            #expect(page["as"] as? String == "stay" && page["src"] == nil)
            #expect(page["reason"] as? String == (kind == "small" ? "saving" : kind))
        }
    }

    /// A sequence that was requested by its name is stored without the source that negotiation prefers.
    @Test(arguments: ["allowance", "origin", "only-if-cached"])
    func theRenditionIsTheAnswerIfTheSourceCannotBeSent(_ obstacle: String) async throws {
        let gif = GIFBuilder.animation(frames: 3, width: 16, height: 18)
        let fetches = Atomic(0)
        let answer: LoopbackOrigin.Handler = { _ in
            fetches.add(1, ordering: .relaxed).oldValue > 0 ? .status(500) : .ok(gif)
        }
        try await WebFixture.run(["/a.gif": answer]) { settings in
            if obstacle == "allowance" { settings.policy.rateLimit = RateLimit(perMinute: 1, burst: 1) }
        } _: { web async throws in
            let name = Rendition.Format.named("avif") != nil ? "avif" : "awebp"
            let stored = try await web.request("GET", web.target(name, "/a.gif"))
            #expect(stored.status == 200 && !PageRule.isWorthwhile(Int64(stored.body.count), insteadOf: Int64(gif.count)))
            var fields = ["Accept: image/avif,image/webp"]
            if obstacle == "only-if-cached" { fields.append("Cache-Control: only-if-cached") }
            for _ in 0..<2 {
                let negotiated = try await web.request("GET", web.target("auto", "/a.gif"), headers: fields)
                #expect(negotiated.status == 200 && negotiated.body == stored.body, "\(negotiated.text)")
                #expect(negotiated["vary"] == "Accept")
            }
            #expect((web.origin.count("/a.gif") > 1) == (obstacle == "origin"))
        }
    }

    @Test func factsThatMustNotBeUsedAnyMoreDecideNothing() async throws {
        let time = AdvancingClock()
        let answer: LoopbackOrigin.Handler = { _ in .ok(time.seconds > 0 ? Self.sticker : Self.gif) }
        try await WebFixture.run(["/a.gif": answer], { $0.cacheClock = time.clock }) { web async throws in
            #expect(try await web.request("GET", web.target("json", "/a.gif")).status == 200)
            time.pass(30 * 86_400)
            // The source has become transparent since.
            #expect(try await web.request("GET", web.target("mp4", "/a.gif")).status == 200)
            for _ in 0..<2 {
                let response = try await web.request("GET", web.target("auto", "/a.gif"), headers: ["Accept: \(Self.safari)"])
                #expect(response["content-type"]?.hasPrefix("image/") == true, "\(response.headers)")
            }
        }
    }

    @Test func anImageNeverGetsAClip() async throws {
        var clip: [UInt8] = []
        try await run([:]) { clip = try await $0.request("POST", "/webm", body: Self.gif).body }
        try await run(["/a.webm": clip, "/b.webm": clip, "/c.webm": clip]) { web async throws in
            func type(_ name: String, _ accept: String) async throws -> String? {
                try await web.request("GET", "/auto/\(web.origin.url(name))", headers: ["Accept: \(accept)"])["content-type"]
            }
            // It waits, because the page could not show the source either.
            let named = Rendition.Format.named("avif") != nil ? "image/avif" : "image/webp"
            #expect(try await type("/a.webm", Self.chromium) == named)
            #expect(try await type("/a.webm", "\(named),*/*;q=0") == named)
            #expect(try await type("/b.webm", "image/png,image/*;q=0.8,*/*;q=0.5") == "image/gif")
            #expect(try await type("/c.webm", Self.safari) == "video/mp4")
            // A program, and a player.
            #expect(try await type("/b.webm", "*/*") == "video/webm")
            #expect(try await type("/b.webm", "video/webm,*/*;q=0.1") == "video/webm")
        }
    }

    @Test func whatAcceptSelectsTakesNoOptionAboutMisses() async throws {
        try await run(["/a.gif": Self.gif]) { web async throws in
            for option in ["on_miss=wait", "on_miss=original", "on_larger=problem", "on_error=original"] {
                let response = try await web.request("GET", "/auto,\(option)/\(web.origin.url("/a.gif"))")
                #expect(response.status == 400 && response.code == "bad_option" && response["vary"] == "Accept")
            }
            #expect(try await web.request("GET", "/auto").code == "bad_source_url")
            let none = try await web.request("GET", "/auto/\(web.origin.url("/none.gif"))")
            #expect(none.status == 404 && none["vary"] == "Accept")
            #expect(try await web.request("POST", "/auto", body: Self.gif).status == 400)
        }
    }

    @Test func aSignatureCoversTheNameAuto() async throws {
        let keys = SigningKeys(["0123456789abcdef0123456789abcdef"])
        try await run(["/a.gif": Self.gif]) { settings in
            settings.policy.signingKeys = keys
            settings.policy.requiresSignature = true
        } _: { web async throws in
            let source = try SourceURL(web.origin.url("/a.gif"))
            let signer = keys
            let signed = try #require(signer.target(Route.auto, of: source))
            #expect(try await web.request("GET", signed).status == 200)
            let other = try #require(signer.target("mp4", of: source)).replacing("/mp4,", with: "/auto,")
            #expect(try await web.request("GET", other).status == 403)
            #expect(try await web.request("GET", "/auto/\(source.text)").status == 403)
        }
    }
}

@Suite("A source is the answer only where Accept permits its type") struct AcceptedSourceTests {
    @Test(
        arguments: [
            ("", [.gif, .apng, .webp, .avif, .mp4, .mov, .webm]),
            ("*/*", [.gif, .apng, .webp, .avif, .mp4, .mov, .webm]),
            ("image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8", [.gif, .apng, .webp, .avif]),
            ("image/png,image/svg+xml,image/*;q=0.8,video/*;q=0.8,*/*;q=0.5", [.gif, .apng, .webp, .avif, .mp4]),
            ("video/webm,video/ogg,video/*;q=0.9,*/*;q=0.5", [.gif, .apng, .webp, .avif, .mp4, .mov, .webm]),
            // Caches reduce the field to what they select.
            ("image/avif", [.gif, .apng, .avif]), ("video/mp4", [.gif, .apng, .mp4]),
            ("image/avif, */*;q=0", [.avif]), ("image/*;q=0, */*", [.mp4, .mov, .webm]),
            ("image/gif;q=0, image/*", [.apng, .webp, .avif]),
            ("*/*;q=0", []), ("video/webm;q=0, */*", [.gif, .apng, .webp, .avif, .mp4, .mov]),
            ("image/webp, video/webm", [.gif, .apng, .webp, .webm]),
        ] as [(String, [SourceFormat])])
    func wildcardsNameNoClipForImages(_ accept: String, _ expected: [SourceFormat]) {
        let field = accept.isEmpty ? AcceptField() : AcceptField([accept])
        let order: [SourceFormat] = [.gif, .apng, .webp, .avif, .mp4, .mov, .webm]
        #expect(order.filter(field.accepts) == expected, "\(accept)")
    }
}
