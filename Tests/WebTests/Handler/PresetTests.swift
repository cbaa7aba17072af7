import Fetch
import Foundation
import Renditions
import TestSupport
import Testing

@testable import Web

@Suite("Requests name options together, and strangers may be held to such names") struct PresetTests {
    private static let gif = GIFBuilder.animation(frames: 3, width: 40, height: 30)
    private static let key = "an-example-key-of-at-least-32-bytes"
    private let paths: [String: LoopbackOrigin.Handler] = ["/a.gif": { _ in .ok(gif) }, "/m/a.gif": { _ in .ok(gif) }]

    private static func presets() throws -> RenditionPresets {
        var presets = RenditionPresets()
        try presets.add("card", [.init(name: "width", value: "20"), .init(name: "fps", value: "5")])
        try presets.add("game", [.init(name: "width", value: "20"), .init(name: "tune", value: "pixel")])
        try presets.add("small", [.init(name: "width", value: "20"), .init(name: "codec", value: "av1")])
        return presets
    }

    private func run(
        _ options: OptionPolicy = .any, keys: [String] = [], _ body: (WebFixture) async throws -> Void
    ) async throws {
        let presets = try Self.presets()
        let configure: (inout WebFixture.Settings) throws -> Void = {
            $0.policy.presets = presets
            $0.policy.options = options
            $0.policy.signingKeys = SigningKeys(keys)
        }
        try await WebFixture.run(paths, configure, body)
    }

    /// The rendition that the fixture's service reads from a target.
    private func rendition(_ target: String, mounts: [String: Mount] = [:]) throws -> String {
        let parser = RouteParser(mounts: mounts, defaults: RenditionDefaults(presets: try Self.presets()))
        let route = try parser.parse(target, hasBody: !target.contains("://")).route
        switch route {
        case .rendition(let rendition, _), .upload(let rendition): return rendition.canonicalText
        default: return "\(route)"
        }
    }

    @Test func aPresetStandsForItsOptionsInEveryFormOfRequest() throws {
        let url = "http://a.test/a.gif"
        for target in ["/mp4,preset=card/\(url)", "/mp4?preset=card&url=\(url)", "/mp4,preset=card"] {
            #expect(try rendition(target) == "mp4,fps=5,width=20", "\(target)")
        }
        let mounts = ["m": Mount(origin: try SourceURL("http://a.test/"))]
        #expect(try rendition("/m/a.mp4?preset=card", mounts: mounts) == "mp4,fps=5,width=20")
        #expect(try rendition("/m/a.html?preset=card", mounts: mounts) == "html,fps=5,width=20")
    }

    @Test func optionsOfAPresetThatTheFormatDoesNotHaveAreLeftOut() throws {
        #expect(try rendition("/jpg,preset=card/http://a.test/a.gif") == "jpg,width=20")
        #expect(try rendition("/mp4,preset=card,width=30/http://a.test/a.gif") == "mp4,fps=5,width=30")
        #expect(try rendition("/mp4,width=30,preset=card/http://a.test/a.gif") == "mp4,fps=5,width=30")
        #expect(try rendition("/webm,preset=sticker/http://a.test/a.gif") == "webm,preset=sticker")
    }

    @Test func platformsHavePresets() throws {
        let url = "http://a.test/a.gif"
        #expect(
            try rendition("/awebp,preset=whatsapp/\(url)") == "awebp,end=10,fit=pad,height=512,max_bytes=500000,width=512")
        #expect(try rendition("/gif,preset=discord/\(url)") == "gif,end=5,fit=pad,height=320,max_bytes=512000,width=320")
        #expect(
            try rendition("/gif,end=2,preset=discord/\(url)") == "gif,end=2,fit=pad,height=320,max_bytes=512000,width=320")
        var own = RenditionPresets()
        try own.add("discord", [.init(name: "width", value: "128")])
        #expect(try RenditionDefaults(presets: own).rendition(.gif, preset: "discord", []).canonicalText == "gif,width=128")
    }

    @Test func anUnknownPresetIsNamed() async throws {
        try await run { web async throws in
            let response = try await web.request("GET", web.target("mp4,preset=cart", "/a.gif"))
            #expect(response.status == 400 && response.code == "bad_option")
            #expect(
                response.detail
                    == "The option “preset” names “cart”, which does not exist; the presets are card, discord, game, small, sticker, whatsapp."
            )
            let facts = try await web.request("GET", web.target("json,preset=card", "/a.gif"))
            #expect(facts.status == 400 && facts.detail == "The option “preset” has no effect on json.")
            let twice = try await web.request("GET", web.target("mp4,preset=card,preset=card", "/a.gif"))
            #expect(twice.detail == "The option “preset” is given twice.")
        }
    }

    @Test func aPresetSharesTheCacheEntryOfItsOptions() async throws {
        try await run { web async throws in
            #expect(
                try await web.request("GET", web.target("mp4,fps=5,width=20", "/a.gif"))["cache-status"]
                    == "gifreel; fwd=miss; stored")
            #expect(try await web.request("GET", web.target("mp4,preset=card", "/a.gif"))["cache-status"] == "gifreel; hit")
        }
    }

    @Test func strangersAreHeldToPresets() async throws {
        try await run(.presets, keys: [Self.key]) { web async throws in
            for target in ["mp4", "mp4,preset=card", "mp4,codec=av1,preset=card", "jpg,preset=card"] {
                #expect(try await web.request("GET", web.target(target, "/a.gif")).status == 200, "\(target)")
            }
            for target in ["mp4,width=20", "html,width=20", "jpg,frame=1", "mp4,preset=card,width=30"] {
                let refused = try await web.request("GET", web.target(target, "/a.gif"))
                #expect(refused.status == 403 && refused.code == "option_not_allowed", "\(target)")
                #expect(refused.detail?.contains("may have a preset: card, discord, game, small, sticker, whatsapp.") == true)
            }
            #expect(try await web.request("POST", "/mp4,width=20", body: Self.gif).code == "option_not_allowed")
            #expect(try await web.request("POST", "/mp4,preset=card", body: Self.gif).status == 200)
            let oembed = try await web.request("GET", "/oembed?url=" + web.origin.url("/a.gif") + "&maxwidth=10")
            #expect(try oembed.json()["thumbnail_url"] == nil)
            let signer = SigningKeys([Self.key])
            let url = try SourceURL(web.origin.url("/a.gif"))
            let signed = try #require(signer.target("mp4", [QueryItem(name: "width", value: "30")], of: url))
            #expect(try await web.request("GET", signed).status == 200)
            let wrong = signed.replacing("sig=", with: "sig=A")
            #expect(try await web.request("GET", wrong).code == "bad_signature")
        }
    }

    @Test func withoutKeysASignatureLiftsNothing() async throws {
        try await run(.presets) { web async throws in
            #expect(try await web.request("GET", web.target("mp4,sig=x,width=20", "/a.gif")).code == "option_not_allowed")
        }
    }

    @Test func theAddressesInAPageNameThePresetThatItsVisitorMayHave() async throws {
        try await run(.presets) { web async throws in
            for (preset, video) in [
                ("card", "mp4,preset=card"), ("game", "mp4,preset=game"), ("small", "mp4,codec=h264,preset=small"),
            ] {
                let page = try await web.request("GET", web.target("html,preset=\(preset)", "/a.gif"))
                let text = String(decoding: page.body, as: UTF8.self)
                for target in [web.target(video, "/a.gif"), web.target("jpg,preset=\(preset)", "/a.gif")] {
                    #expect(text.contains("\"\(target)\""), "\(text)")
                    #expect(try await web.request("GET", target).status == 200)
                }
            }
        }
    }

    @Test func aPresetThatCannotWorkIsRefused() throws {
        var presets = RenditionPresets()
        for (options, name) in [
            ([("width", "1")], "width"), ([("nonsense", "1")], "nonsense"), ([("zoom", "2"), ("width", "20")], "zoom"),
            ([("width", "20"), ("width", "30")], "width"), ([("preset", "card")], "preset"),
        ] {
            let error = #expect(throws: RenditionPresets.Invalid.self) {
                try presets.add("x", options.map { .init(name: $0.0, value: $0.1) })
            }
            guard case .option(.invalidOption(name, _)) = error else {
                Issue.record("\(options): \(String(describing: error))")
                continue
            }
        }
        #expect(throws: RenditionPresets.Invalid.builtInName) { try presets.add("sticker", []) }
        // A poster has no tuning.
        try presets.add("game", [.init(name: "tune", value: "pixel")])
        let defaults = RenditionDefaults(presets: presets)
        #expect(try defaults.rendition(.jpg, preset: "game", []).canonicalText == "jpg")
        let av1 = try defaults.rendition(.mp4, preset: "game", [.init(name: "codec", value: "av1")])
        #expect(av1.canonicalText == "mp4,codec=av1,tune=pixel")
    }
}
