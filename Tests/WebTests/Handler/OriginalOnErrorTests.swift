import Fetch
import Foundation
import SystemIO
import TestSupport
import Testing

@testable import Web

/// `on_error: original`: a source that cannot be converted is sent unchanged.
@Suite("A GIF that cannot be converted may be the answer itself", .timeLimit(.minutes(10))) struct OriginalOnErrorTests {
    /// The signature and a canvas, and no frame.
    private static let broken = Array(GIFBuilder.animation(frames: 2).prefix(40))
    private static let whole = GIFBuilder.animation(frames: 3)
    /// The start of a JPEG.
    private static let photo: [UInt8] = [0xff, 0xd8, 0xff, 0xe0] + Array(repeating: 0, count: 100)
    private static let still = picture()
    /// Its pixels begin later than the bytes by which sources are recognized end.
    private static let described = picture([.init("tEXt", Array("Comment\u{0}".utf8) + Array(repeating: 65, count: 3000))])

    private static func picture(_ head: [APNGBuilder.Chunk] = []) -> [UInt8] {
        var builder = APNGBuilder(width: 40, height: 30, plays: nil, head: head)
        builder.addPicture(.init(width: 40, height: 30, word: 0xff00_00ff))
        return builder.finish()
    }

    private func run(_ body: (WebFixture, LoopbackOrigin) async throws -> Void) async throws {
        let origin = try LoopbackOrigin([
            "/broken.gif": { _ in .ok(Self.broken) }, "/whole.gif": { _ in .ok(Self.whole) },
            "/page.gif": { _ in .ok(Array("<html>".utf8)) }, "/photo.gif": { _ in .ok(Self.photo) },
            "/still.gif": { _ in .ok(Self.still) }, "/described.gif": { _ in .ok(Self.described) },
        ])
        defer { origin.stop() }
        let configure: (inout WebFixture.Settings) throws -> Void = { settings in
            settings.policy.adminToken = "secret"
            var mount = Mount(origin: try SourceURL(origin.url("/")))
            settings.policy.mounts["strict"] = mount
            mount.onError = .original
            settings.policy.mounts["m"] = mount
            mount.negotiates = true
            settings.policy.mounts["n"] = mount
            mount.onError = .problem
            settings.policy.mounts["negotiates"] = mount
            mount.onMiss = .original
            settings.policy.mounts["follows"] = mount
        }
        try await WebFixture.run([:], configure) { web async throws in try await body(web, origin) }
    }

    @Test func theGIFIsSentAndNotStored() async throws {
        try await run { web, origin async throws in
            for _ in 0..<2 {
                for target in [
                    "/m/broken.mp4", "/m/broken.jpg", "/n/broken.gif", "/m/broken.html",
                    "/strict/broken.html?on_error=original",
                ] {
                    let answer = try await web.request("GET", target, headers: ["Accept: video/mp4"])
                    #expect(answer.status == 200 && answer.body == Self.broken, "\(target): \(answer.text)")
                    #expect(answer["content-type"] == "image/gif" && answer["cache-control"] == "no-store")
                    #expect(answer["content-disposition"] == "inline; filename=\"broken.gif\"")
                    #expect(answer["vary"] == (target.hasPrefix("/n/") ? "Accept" : nil))
                }
            }
            // One fetch for the first attempt, and one for the source itself. The failure is remembered.
            #expect(origin.count("/broken.gif") <= 4)
        }
    }

    @Test func aClientThatRefusesTheSourceGetsTheReason() async throws {
        try await run { web, _ async throws in
            for (accept, code) in [("video/mp4", nil), ("video/mp4,image/gif;q=0", "corrupt_gif")] as [(String, String?)] {
                for _ in 0..<2 {
                    let answer = try await web.request("GET", "/follows/broken.gif", headers: ["Accept: \(accept)"])
                    #expect(answer.code == code && (answer.body == Self.broken) == (code == nil), "\(accept): \(answer.text)")
                }
            }
        }
    }

    /// Some sites name JPEGs and PNGs `.gif`, and browsers show them.
    @Test func anImageThatIsNoAnimationIsSentAsItIs() async throws {
        try await run { web, origin async throws in
            for (name, image, type) in [("photo", Self.photo, "image/jpeg"), ("still", Self.still, "image/png")] {
                let url = origin.url("/\(name).gif")
                for target in ["/negotiates/\(name).gif", "/m/\(name).mp4", "/n/\(name).gif", "/auto/\(url)"] {
                    let answer = try await web.request("GET", target, headers: ["Accept: image/avif,image/*,*/*;q=0.8"])
                    #expect(answer.status == 200 && answer.body == image, "\(target): \(answer.text)")
                    #expect(answer["content-type"] == type && answer["cache-control"] != "no-store", "\(target)")
                    let ending = type == "image/jpeg" ? "jpg" : "png"
                    #expect(answer["content-disposition"] == "inline; filename=\"\(name).\(ending)\"", "\(target)")
                }
                // One fetch for the first attempt, and one for the image, which is stored.
                #expect(origin.count("/\(name).gif") == 2)
                for target in ["/strict/\(name).mp4", "/mp4/\(url)", "/json/\(url)"] {
                    #expect(try await web.request("GET", target).code == "not_an_animation", "\(target)")
                }
            }
        }
    }

    @Test func aStoredImageIsAHitAndNoMiss() async throws {
        try await run { web, _ async throws in
            let misses = {
                try await web.request("GET", "/cache", headers: ["Authorization: Bearer secret"]).json()["misses"] as? Int
            }
            for name in ["photo", "still"] {
                let ask = { (accept: String) in
                    try await web.request("GET", "/negotiates/\(name).gif", headers: ["Accept: \(accept)"])
                }
                for _ in 0..<2 { #expect(try await ask("image/avif,image/*").status == 200) }
                let before = try #require(try await misses())
                for accept in ["image/avif,image/*", "video/*", "image/webp", "*/*"] {
                    let answer = try await ask(accept)
                    #expect(answer.status == 200 && answer["cache-status"] == "gifreel; hit", "\(accept)")
                }
                #expect(try await misses() == before)
            }
        }
    }

    @Test func aPNGThatOnlyTheDecoderFindsToBeNoAnimationIsSentAsItIs() async throws {
        try await run { web, origin async throws in
            let auto = "/auto/\(origin.url("/described.gif"))"
            for target in ["/m/described.mp4", "/m/described.mp4", "/negotiates/described.gif", "/n/described.gif", auto] {
                let answer = try await web.request("GET", target, headers: ["Accept: video/mp4,image/*,*/*;q=0.8"])
                #expect(answer.status == 200 && answer.body == Self.described, "\(target): \(answer.text)")
                #expect(answer["content-type"] == "image/png" && answer["cache-control"] != "no-store", "\(target)")
                // One fetch for the first attempt, and one for the image, which is stored.
                if target.hasPrefix("/m/") { #expect(origin.count("/described.gif") == 2) }
            }
            #expect(try await web.request("GET", "/strict/described.mp4").code == "not_an_animation")
        }
    }

    @Test(
        arguments: [
            ("/negotiates/photo.gif", nil), ("/m/still.mp4", nil), ("/negotiates/described.gif", nil), ("/m/broken.mp4", nil),
            ("/n/broken.gif", nil), ("/strict/broken.html?on_error=original", nil), ("/strict/broken.mp4", "corrupt_gif"),
            ("/negotiates/broken.gif", "corrupt_gif"), ("/n/page.gif", "not_an_animation"), ("/m/none.mp4", "source_not_found"),
        ] as [(String, String?)])
    func theStatusOfARequestThatDoesNotWaitEndsAsAWaitingRequestWould(_ target: String, _ code: String?) async throws {
        try await expectStatus(of: target, "Accept: video/mp4,image/*,*/*;q=0.8", code)
    }

    @Test(arguments: [("image/gif;q=0", "corrupt_gif"), ("image/gif", nil)] as [(String, String?)])
    func theStatusOfARequestThatRefusesTheSourceEndsWithTheProblem(_ accept: String, _ code: String?) async throws {
        try await expectStatus(of: "/follows/broken.gif", "Accept: video/mp4,\(accept)", code)
    }

    /// Expects the end of a request that does not wait: the problem with this code, or the address of a response.
    private func expectStatus(of target: String, _ accept: String, _ code: String?) async throws {
        try await run { web, _ async throws in
            let accepted = try await web.request("GET", target, headers: [accept, "Prefer: respond-async"])
            let status = try #require(accepted["location"])
            try await waitUntil("the end of \(status)") {
                ["done", "failed"].contains(try await web.request("GET", status).json()["state"] as? String)
            }
            let last = try await web.request("GET", status).json()
            #expect((last["problem"] as? [String: Any])?["code"] as? String == code)
            #expect(last["url"] as? String == (code == nil ? target : nil))
            #expect((try await web.request("GET", target, headers: [accept]).status == 200) == (code == nil))
        }
    }

    @Test func anExplanationSaysThatTheSourceIsSent() async throws {
        try await run { web, _ async throws in
            for (target, isSent) in [
                ("/m/broken.mp4", true), ("/negotiates/photo.gif", true), ("/n/still.gif", true), ("/m/broken.html", true),
                ("/strict/broken.mp4", false), ("/m/broken.json", false), ("/m/page.mp4", false),
            ] {
                let status = try await web.request("GET", target, headers: ["Accept: video/mp4,image/*,*/*;q=0.8"]).status
                let explained = try await web.request(
                    "GET", "/explain?url=\(PercentEncoding.encode(target))", headers: ["Authorization: Bearer secret"])
                let summary = try #require(try explained.json()["summary"] as? String)
                #expect(summary.hasPrefix("A request gets the source itself, instead of 4") == isSent, "\(target): \(summary)")
                #expect((status == 200) == isSent, "\(target)")
            }
        }
    }

    @Test func whatCanBeConvertedIsConverted() async throws {
        try await run { web, _ async throws in
            let video = try await web.request("GET", "/m/whole.mp4")
            #expect(video["content-type"] == "video/mp4" && video["cache-control"]?.hasPrefix("public") == true)
            #expect(try await web.request("GET", "/m/whole.html").text.contains("<video"))
        }
    }

    @Test func errorsOfTheRequestAndOfTheOriginStayErrors() async throws {
        try await run { web, _ async throws in
            for (target, code) in [
                ("/strict/broken.mp4", "corrupt_gif"), ("/m/none.mp4", "source_not_found"), ("/m/page.mp4", "not_an_animation"),
                ("/m/whole.mp4?start=100", "bad_option"), ("/m/whole.mp4?width=1", "bad_option"),
                ("/m/broken.json", "corrupt_gif"),
                ("/m/whole.mp4?on_error=original", "bad_option"), ("/m/whole.html?on_error=later", "bad_option"),
            ] {
                let answer = try await web.request("GET", target)
                #expect(answer.code == code, "\(target): \(answer.status) \(answer.text)")
            }
        }
    }
}
