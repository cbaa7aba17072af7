import Fetch
import Renditions
import TestSupport
import Testing

@testable import Web

@Suite("width=auto takes the width from the client's hints") struct WidthHintTests {
    private static let gif = GIFBuilder.animation(frames: 2, width: 700, height: 20)
    private let paths: [String: LoopbackOrigin.Handler] = ["/a.gif": { _ in .ok(gif) }]

    @Test(
        arguments: [
            ("300", nil, nil, 320), ("320", nil, nil, 320), ("320.5", "2", "100", 480), (nil, "2", "400", 960),
            (nil, nil, "400", 480), ("99999999", nil, nil, 3840), (nil, "999999999", "999999999", 3840), ("1", nil, nil, 160),
        ] as [(String?, String?, String?, Int)])
    func aHintIsRoundedUpToAStep(_ width: String?, _ ratio: String?, _ viewport: String?, _ step: Int) {
        #expect(WidthHints(width: width, ratio: ratio, viewport: viewport).width == step)
    }

    @Test(
        arguments: [(nil, "2", nil), ("0", nil, nil), ("-1", nil, nil), ("wide", nil, nil), ("", "", "")]
            as [(String?, String?, String?)])
    func withoutAUsableHintThereIsNoWidth(_ width: String?, _ ratio: String?, _ viewport: String?) {
        #expect(WidthHints(width: width, ratio: ratio, viewport: viewport).width == nil)
    }

    @Test func aRequestGetsItsStepAndSharesItsCacheEntry() async throws {
        try await WebFixture.run(paths) { web async throws in
            let target = web.target("jpg,width=auto", "/a.gif")
            let first = try await web.request("GET", target, headers: ["Sec-CH-Width: 300"])
            #expect(first.status == 200 && first["cache-status"] == "gifreel; fwd=miss; stored")
            #expect(first["vary"] == WidthHints.names)
            let same = try await web.request("GET", target, headers: ["Sec-CH-Width: 310"])
            #expect(same["cache-status"] == "gifreel; hit" && same["etag"] == first["etag"] && same["vary"] == WidthHints.names)
            let stated = try await web.request("GET", web.target("jpg,width=320", "/a.gif"))
            #expect(stated["etag"] == first["etag"] && stated["vary"] == nil)
            let wide = try await web.request("GET", target, headers: ["Sec-CH-Width: 600"])
            #expect(wide.status == 200 && wide["etag"] != first["etag"])
            let none = try await web.request("GET", target)
            let unbounded = try await web.request("GET", web.target("jpg", "/a.gif"))
            #expect(none["etag"] == unbounded["etag"])
            #expect(none["vary"] == WidthHints.names)
            // A hint without the option means nothing.
            let plain = try await web.request("GET", web.target("jpg", "/a.gif"), headers: ["Sec-CH-Width: 300"])
            #expect(plain["etag"] == none["etag"] && plain["vary"] == nil)
        }
    }

    @Test func mountsUploadsAndNegotiationTakeTheHint() async throws {
        let origin = try LoopbackOrigin(paths)
        defer { origin.stop() }
        var mount = Mount(origin: try SourceURL(origin.url("/")))
        mount.negotiates = true
        let mounts = ["m": mount]
        try await WebFixture.run(paths, { $0.policy.mounts = mounts }) { web async throws in
            let hint = ["Sec-CH-Width: 150"]
            let stated = try await web.request("GET", "/m/a.mp4?width=160")
            let mounted = try await web.request("GET", "/m/a.mp4?width=auto", headers: hint)
            #expect(mounted.status == 200 && mounted["etag"] == stated["etag"] && mounted["vary"] == WidthHints.names)
            let negotiated = try await web.request("GET", "/m/a.gif?width=auto", headers: hint + ["Accept: video/mp4"])
            #expect(negotiated["vary"] == "Accept, " + WidthHints.names)
            let upload = try await web.request("POST", "/mp4,width=auto", headers: hint, body: Self.gif)
            let other = try await web.request("POST", "/mp4,width=160", body: Self.gif)
            #expect(upload.status == 200 && upload["content-location"] == other["content-location"])
        }
    }

    @Test func theOptionIsRefusedWhereAWidthIs() async throws {
        try await WebFixture.run(paths) { web async throws in
            for format in ["json,width=auto", "mp4,width=auto,zoom=2", "webm,width=auto,preset=sticker", "jpg,height=auto"] {
                let refused = try await web.request("GET", web.target(format, "/a.gif"), headers: ["Sec-CH-Width: 300"])
                #expect(refused.status == 400 && refused.code == "bad_option", "\(format)")
                #expect(try await web.request("GET", web.target(format, "/a.gif")).status == 400, "\(format)")
            }
        }
    }

    @Test func aPageAsksForHintsAndItsAddressesTakeThem() async throws {
        try await WebFixture.run(paths, { $0.policy.options = .presets }) { web async throws in
            let page = try await web.request("GET", web.target("html,width=auto", "/a.gif"), headers: ["Sec-CH-Width: 300"])
            #expect(page.status == 200 && page["accept-ch"] == WidthHints.names && page["vary"] == nil)
            let text = String(decoding: page.body, as: UTF8.self)
            for target in [web.target("mp4,width=auto", "/a.gif"), web.target("jpg,width=auto", "/a.gif")] {
                #expect(text.contains("\"\(target)\""), "\(text)")
            }
        }
    }
}
