import Digests
import Fetch
import Foundation
import Renditions
import SystemIO
import TestSupport
import Testing

@testable import Web

@Suite("Responses tell a CDN how long to keep them and what they were made of", .timeLimit(.minutes(10))) struct CDNTests {
    private static let gif = GIFBuilder.animation(frames: 4, width: 41, height: 30)
    private static let paths: [String: LoopbackOrigin.Handler] = [
        "/a.gif": { _ in .ok(gif) }, "/b.gif": { _ in .ok(gif) },
        "/short.gif": { _ in .ok(gif, ["Cache-Control: max-age=90"]) },
        "/private.gif": { _ in .ok(gif, ["Cache-Control: no-store"]) },
    ]

    private func hash(_ text: String) -> String { Hex.encode(SHA256.hash(text.utf8).prefix(8)) }

    @Test func withoutTheSettingThereAreNoFieldsForThem() async throws {
        try await WebFixture.run(Self.paths) { web async throws in
            for _ in 0..<2 {
                let video = try await web.request("GET", web.target("mp4", "/a.gif"))
                #expect(video["cdn-cache-control"] == nil && video["cache-tag"] == nil && video["surrogate-key"] == nil)
                #expect(video["cache-control"]?.hasSuffix(", stale-if-error=604800") == true)
            }
        }
    }

    @Test func missesAndHitsOfAllRenditionsOfASourceHaveItsTags() async throws {
        try await WebFixture.run(Self.paths) {
            $0.policy.head.cdnMaxAge = 2_000_000
            $0.policy.publicURL = "https://gifs.example"
        } _: { web async throws in
            let source = "gifreel-source-" + hash(web.origin.url("/a.gif"))
            let host = "gifreel-host-" + hash("127.0.0.1")
            for format in ["mp4", "mp4", "jpg,width=20", "html"] {
                let answer = try await web.request("GET", web.target(format, "/a.gif"))
                #expect(answer["cache-tag"] == "\(host),\(source)" && answer["surrogate-key"] == "\(host) \(source)")
                #expect(
                    answer.permits(
                        2000000, ", stale-while-revalidate=604800, stale-if-error=604800", field: "cdn-cache-control"))
                #expect(answer.permits(86400, ", stale-while-revalidate=604800, stale-if-error=604800"))
                #expect(answer.fieldCount("cache-tag") == 1 && answer.fieldCount("cdn-cache-control") == 1)
            }
            // The facts change with the contents of the cache.
            let facts = try await web.request("GET", web.target("json", "/a.gif"))
            #expect(
                facts.permits(60, ", stale-while-revalidate=604800, stale-if-error=604800", field: "cdn-cache-control")
                    && facts["cache-tag"] != nil)
            let other = try await web.request("GET", web.target("mp4", "/b.gif"))
            #expect(other["cache-tag"]?.hasPrefix(host) == true && other["cache-tag"] != "\(host),\(source)")
        }
    }

    @Test func aCDNKeepsNothingForLongerThanItMay() async throws {
        let keys = SigningKeys(["0123456789abcdef0123456789abcdef"])
        try await WebFixture.run(Self.paths) { settings in
            settings.policy.head.cdnMaxAge = 2_000_000
            settings.policy.signingKeys = keys
        } _: { web async throws in
            let short = try await web.request("GET", web.target("mp4", "/short.gif"))
            #expect(short.permits(90, ", stale-while-revalidate=604800, stale-if-error=604800", field: "cdn-cache-control"))
            let never = try await web.request("GET", web.target("mp4", "/private.gif"))
            #expect(never["cache-control"] == "no-store" && never["cdn-cache-control"] == nil)
            let source = try SourceURL(web.origin.url("/a.gif"))
            let expires = Int64(currentSeconds() + 1000)
            let target = try #require(keys.target("mp4", [], of: source, expires: expires))
            for _ in 0..<2 {
                let signed = try await web.request("GET", target)
                let age = try #require(
                    signed["cdn-cache-control"]?.wholeMatch(of: try Regex("public, max-age=(\\d+)"))?[1].substring)
                #expect((900...1000).contains(Int(age) ?? 0))
            }
            #expect(try await web.request("GET", web.target("mp4", "/none.gif"))["cdn-cache-control"] == nil)
        }
    }

    @Test func theTagsOfAMountDoNotNameItsOrigin() async throws {
        let origin = try LoopbackOrigin(Self.paths)
        defer { origin.stop() }
        try await WebFixture.run([:]) { settings in
            var mount = Mount(origin: try SourceURL(origin.url("/")))
            mount.maxAge = 600
            settings.policy.mounts = ["media": mount]
            settings.policy.head.cdnMaxAge = 5000
        } _: { web async throws in
            let video = try await web.request("GET", "/media/a.mp4")
            #expect(video["cache-tag"]?.contains("127.0.0.1") == false)
            #expect(video.permits(600, ", stale-while-revalidate=604800, stale-if-error=604800"))
            #expect(video.permits(5000, ", stale-while-revalidate=604800, stale-if-error=604800", field: "cdn-cache-control"))
        }
    }
}
