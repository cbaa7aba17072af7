import Fetch
import Renditions
import TestSupport
import Testing

@testable import Web

/// `renditions.av1: background` on a mount that negotiates.
@Suite("No visitor waits for the AVIF of a mount if the settings leave it to the background", .timeLimit(.minutes(10)))
struct SequenceInBackgroundTests {
    /// Larger than its AVIF: decoders skip what is behind the trailer.
    private static let gif = GIFBuilder.animation(frames: 3) + [UInt8](repeating: 0, count: 50_000)

    @Test(.enabled(if: Rendition.Format.named("avif") != nil), arguments: [Mount.OnMiss.wait, .original])
    func theGIFIsTheAnswerUntilItWasSentOftenEnough(_ onMiss: Mount.OnMiss) async throws {
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(Self.gif) }])
        defer { origin.stop() }
        try await WebFixture.run([:]) { settings in
            var mount = Mount(origin: try SourceURL(origin.url("/")))
            mount.negotiates = true
            mount.onMiss = onMiss
            settings.policy.mounts = ["m": mount]
            settings.policy.av1After = 3
        } _: { web async throws in
            func request(_ accept: String) async throws -> RawHTTPResponse {
                try await web.request("GET", "/m/a.gif", headers: ["Accept: \(accept)"])
            }
            for _ in 0..<2 {
                let answer = try await request("image/avif,*/*")
                #expect(answer.body == Self.gif && answer["vary"] == "Accept")
                // No cache keeps it for long.
                let lifetime = try #require(answer["cache-control"])
                #expect(lifetime.hasPrefix("public, max-age=60") || lifetime == "no-cache")
            }
            #expect(web.outcomes.all.isEmpty)
            // The video is not spared.
            if onMiss == .wait { #expect(try await request("video/mp4")["content-type"] == "video/mp4") }
            try await waitUntil("the AVIF") {
                let answer = try await request("image/avif,*/*")
                return answer["content-type"] == "image/avif" && answer["cache-status"] == "gifreel; hit"
            }
            try await waitUntil("the end of the entry") { web.outcomes.all == [.made] }
        }
    }

    @Test(.enabled(if: Rendition.Format.named("avif") != nil))
    func whatTheOriginForbidsToStoreNoCacheStores() async throws {
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(Self.gif, ["Cache-Control: no-store"]) }])
        defer { origin.stop() }
        try await WebFixture.run([:]) { settings in
            var mount = Mount(origin: try SourceURL(origin.url("/")))
            mount.negotiates = true
            settings.policy.mounts = ["m": mount]
            settings.policy.av1After = 3
        } _: { web async throws in
            let answer = try await web.request("GET", "/m/a.gif", headers: ["Accept: image/avif,*/*"])
            #expect(answer.body == Self.gif && answer["cache-control"] == "no-store" && answer["vary"] == "Accept")
        }
    }
}
