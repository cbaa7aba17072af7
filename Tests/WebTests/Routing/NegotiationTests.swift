import Fetch
import Renditions
import TestSupport
import Testing

@testable import Web

@Suite("A mount that negotiates selects a rendition by Accept") struct NegotiationTests {
    @Test(
        arguments: [
            // Chromium, Firefox and Safari for <img>; older Safari.
            ("image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8", .avif),
            ("image/avif,image/webp,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5", .avif),
            (
                "image/webp,image/avif,image/jxl,image/heic,video/*;q=0.8,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5",
                .video
            ),
            ("image/png,image/svg+xml,image/*;q=0.8,video/*;q=0.8,*/*;q=0.5", .video),
            // Wildcards name no format but the GIF.
            ("*/*", .original), ("image/*", .original), ("", .original),
            // A weight of zero refuses.
            ("image/avif;q=0, */*", .original), ("video/*;q=0, image/avif", .avif),
            ("video/mp4;q=0, video/*, image/avif", .avif), ("video/mp4;q=0, image/avif;q=0", .original),
            // A GIF that weighs more is sent.
            ("image/avif;q=0.5, image/gif", .original), ("image/avif;q=0.5, image/*;q=0.6", .original),
            ("image/avif;q=0.5, image/gif;q=0.4, */*", .avif), ("image/avif;q=0.5, image/gif;q=0.5", .avif),
            ("video/*;q=0.5, image/avif;q=0.7, image/gif;q=0.6", .avif),
            // A video that is named itself is weighed against the sequence, its wildcard is not.
            ("video/mp4, image/avif", .video), ("video/mp4;q=0.5, image/avif", .avif),
            ("video/*;q=0.5, image/avif", .video), ("video/mp4;q=0.5, video/*, image/avif;q=0.6", .avif),
            // A client without AVIF gets the WebP; of equals, the AVIF is sent.
            ("image/webp", .webp), ("image/webp,image/png,image/*,*/*;q=0.8", .webp), ("image/webp, image/avif", .avif),
            ("image/webp, image/avif;q=0.9", .webp), ("image/webp;q=0.5, image/gif", .original),
            ("image/webp;q=0, */*", .original), ("image/webp, video/*;q=0.8", .video), ("video/mp4;q=0.5, image/webp", .webp),
        ] as [(String, AcceptField.Preference)])
    func namedFormatsOfSufficientWeightAreSent(_ accept: String, _ expected: AcceptField.Preference) {
        #expect(AcceptField([accept]).preference(offersAVIF: true, offersWebP: true) == expected)
    }

    @Test(
        arguments: [
            ("image/avif", .original), ("image/avif, video/mp4;q=0.5", .video), ("image/avif, image/gif;q=0.5", .original),
            ("image/webp", .original),
        ] as [(String, AcceptField.Preference)])
    func aFormatThatIsNotOfferedIsSkipped(_ accept: String, _ expected: AcceptField.Preference) {
        #expect(AcceptField([accept]).preference(offersAVIF: false, offersWebP: false) == expected)
    }

    @Test func theSequenceHasTheOptionsThatApplyToIt() throws {
        var video = Rendition(format: .mp4)
        try video.set("width", to: "100")
        try video.set("bg", to: "000000")
        let negotiation = Negotiation(video, offered: [.avif, .awebp])
        #expect(negotiation.avif?.canonicalText == "avif,width=100")
        #expect(negotiation.webp?.canonicalText == "awebp,width=100")
        #expect(negotiation.original.canonicalText == "original")
        let accepted = ["video/mp4", "image/avif", "image/webp", "image/*"]
        let selected = accepted.map { negotiation.choice(for: AcceptField([$0])) }
        #expect(selected == [video.withoutBFrames, negotiation.avif, negotiation.webp, negotiation.original])
        let without = Negotiation(video, offered: [])
        #expect(without.avif == nil && without.choice(for: AcceptField(["image/avif, image/webp"])) == without.original)
    }

    @Test func onlyTheNameOfTheGIFIsNegotiated() throws {
        var mount = Mount(origin: try SourceURL("https://a.test/up/"))
        let fixed = RouteParser(mounts: ["m": mount])
        mount.negotiates = true
        let negotiating = RouteParser(mounts: ["m": mount])
        #expect(try negotiating.parse("/m/a.gif?width=20").negotiation?.video.canonicalText == "mp4,bframes=0,width=20")
        #expect(try negotiating.parse("/m/a.GIF").negotiation != nil)
        for target in ["/m/a.mp4", "/m/a.jpg", "/m/a.json", "/mp4/https://a.test/up/a.gif"] {
            #expect(try negotiating.parse(target).negotiation == nil, "\(target)")
        }
        #expect(try fixed.parse("/m/a.gif").negotiation == nil)
    }

    @Test func aTargetThatNegotiatesIsRecognizedAlsoIfItIsInvalid() throws {
        var mount = Mount(origin: try SourceURL("https://a.test/"))
        mount.negotiates = true
        let parser = RouteParser(mounts: ["m": mount, "n": Mount(origin: mount.rule.root)])
        for target in ["/m/a.gif", "/m/a.GIF?x=1", "/m/../a.gif", "/m/.gif"] {
            #expect(parser.namesNegotiation(target), "\(target)")
        }
        for target in ["/n/a.gif", "/m/a.mp4", "/m/a.mp4?x=.gif", "/mp4/https://x/a.gif", "/", "", "/m"] {
            #expect(!parser.namesNegotiation(target), "\(target)")
        }
    }
}

@Suite("Responses of a mount that negotiates", .timeLimit(.minutes(10))) struct NegotiatedResponseTests {
    private static func origin() throws -> LoopbackOrigin {
        let gif = GIFBuilder.animation(frames: 40, width: 160, height: 120)
        let tiny = GIFBuilder.animation(frames: 1, width: 2, height: 2)
        let small = GIFBuilder.animation(frames: 3, width: 2, height: 2)
        return try LoopbackOrigin([
            "/a.gif": { _ in .ok(gif) }, "/tiny.gif": { _ in .ok(tiny) }, "/small.gif": { _ in .ok(small) },
        ])
    }

    @Test func everyResponseOfTheRouteVariesByAccept() async throws {
        let origin = try Self.origin()
        defer { origin.stop() }
        let configure: (inout WebFixture.Settings) throws -> Void = { settings in
            var mount = Mount(origin: try SourceURL(origin.url("/")))
            mount.negotiates = true
            settings.policy.mounts = ["media": mount]
            settings.policy.signingKeys = SigningKeys(["0123456789abcdef0123456789abcdef"])
        }
        try await WebFixture.run([:], configure) { web async throws in
            var tags: Set<String> = []
            for accept in ["video/mp4", "image/gif"] {
                let whole = try await web.request("GET", "/media/a.gif", headers: ["Accept: \(accept)"])
                let tag = try #require(whole["etag"])
                tags.insert(tag)
                for (headers, status) in [
                    (["If-None-Match: \(tag)"], 304), (["Range: bytes=0-1"], 206), (["Range: bytes=99999999-"], 416),
                    (["If-Match: \"x\""], 412), ([], 200),
                ] {
                    let part = try await web.request("GET", "/media/a.gif", headers: ["Accept: \(accept)"] + headers)
                    #expect(part.status == status && part["vary"] == "Accept" && part.fieldCount("vary") == 1, "\(status)")
                }
            }
            #expect(tags.count == 2)
            for (method, target, status) in [
                ("GET", "/media/a.gif?width=0", 400), ("GET", "/media/a.gif?x=1", 400), ("GET", "/media/none.gif", 404),
                ("GET", "/media/a.gif?sig=x", 403), ("HEAD", "/media/none.gif", 404),
                ("DELETE", "/media/a.gif", 405),
            ] {
                let problem = try await web.request(method, target)
                #expect(problem.status == status && problem["vary"] == "Accept", "\(method) \(target): \(problem.status)")
                #expect(problem.fieldCount("vary") == 1)
            }
            #expect(try await web.request("GET", "/media/a.mp4?width=0")["vary"] == nil)
            let preferences = ["Accept: video/mp4", "Prefer: respond-async"]
            let accepted = try await web.request("GET", "/media/tiny.gif", headers: preferences)
            #expect(accepted.status == 202 && accepted["vary"] == "Accept" && accepted.fieldCount("vary") == 1)
        }
    }

    @Test func aClientWithoutAVIFGetsTheWebPUnlessTheGIFIsSmaller() async throws {
        let origin = try Self.origin()
        defer { origin.stop() }
        let configure: (inout WebFixture.Settings) throws -> Void = { settings in
            var mount = Mount(origin: try SourceURL(origin.url("/")))
            mount.negotiates = true
            settings.policy.mounts = ["media": mount]
        }
        try await WebFixture.run([:], configure) { web async throws in
            for status in ["gifreel; fwd=miss; stored", "gifreel; hit", "gifreel; hit"] {
                let answer = try await web.request("GET", "/media/a.gif", headers: ["Accept: image/webp, */*"])
                #expect(answer["content-type"] == "image/webp" && answer["cache-status"] == status)
                #expect(answer.body.starts(with: "RIFF".utf8) && answer["vary"] == "Accept")
            }
            let named = try await web.request("GET", "/media/a.awebp")
            #expect(named["content-type"] == "image/webp" && named["cache-status"] == "gifreel; hit")
            for _ in 0..<2 {
                let small = try await web.request("GET", "/media/small.gif", headers: ["Accept: image/webp, */*"])
                #expect(small["content-type"] == "image/gif")
            }
        }
    }

    @Test func aRenditionLargerThanItsGIFCostsNoSecondFetch() async throws {
        let origin = try Self.origin()
        defer { origin.stop() }
        let configure: (inout WebFixture.Settings) throws -> Void = { settings in
            var mount = Mount(origin: try SourceURL(origin.url("/")))
            mount.negotiates = true
            settings.policy.mounts = ["media": mount]
        }
        try await WebFixture.run([:], configure) { web async throws in
            let first = try await web.request("GET", "/media/tiny.gif", headers: ["Accept: video/mp4"])
            #expect(first["content-type"] == "image/gif" && first["cache-status"] == "gifreel; fwd=miss; stored")
            let second = try await web.request("GET", "/media/tiny.gif", headers: ["Accept: image/gif"])
            #expect(second["cache-status"] == "gifreel; hit" && second.body == first.body)
            #expect(origin.count("/tiny.gif") == 1)
        }
    }
}
