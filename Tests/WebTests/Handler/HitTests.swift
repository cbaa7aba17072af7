import Fetch
import Foundation
import HTTP
import TestSupport
import Testing

@testable import Web

@Suite("Responses with renditions, from misses and from hits") struct HitTests {
    private static let gif = GIFBuilder.animation(frames: 40, width: 160, height: 120)
    private let paths: [String: LoopbackOrigin.Handler] = [
        "/a.gif": { _ in .ok(gif) }, "/b.gif": { _ in .ok(gif) },
        "/short.gif": { _ in .ok(gif, ["Cache-Control: max-age=90"]) },
        "/private.gif": { _ in .ok(gif, ["Cache-Control: no-store"]) },
        "/tiny.gif": { _ in .ok(GIFBuilder.animation(frames: 1, width: 2, height: 2)) },
    ]
    /// Fields that every response has for itself.
    private let ownFields: Set = ["date", "x-request-id", "cache-status", "server-timing", "connection", "keep-alive"]

    @Test func aHitDiffersFromItsMissOnlyInCacheStatusAndTiming() async throws {
        try await WebFixture.run(paths, { $0.cacheClock = .stopped }) { web async throws in
            for format in ["mp4", "jpg,width=20", "png", "webp"] {
                let target = web.target(format, "/a.gif")
                let miss = try await web.request("GET", target)
                let hits = [try await web.request("GET", target), try await web.request("GET", target)]
                #expect(miss.status == 200 && miss["cache-status"] == "gifreel; fwd=miss; stored", "\(format)")
                for hit in hits {
                    #expect(hit.status == 200 && hit["cache-status"] == "gifreel; hit" && hit.body == miss.body)
                    #expect(
                        hit.headers.filter { !ownFields.contains($0.key) }
                            == miss.headers.filter { !ownFields.contains($0.key) })
                }
            }
        }
    }

    @Test func aMissReportsTheTimesOfItsStagesAndAHitNone() async throws {
        try await WebFixture.run(paths) { web async throws in
            let target = web.target("mp4", "/a.gif")
            let timing = try #require(try await web.request("GET", target)["server-timing"])
            let stages = timing.split(separator: ", ").map { $0.split(separator: ";dur=") }
            #expect(stages.map { $0.first ?? "" } == ["queue", "fetch", "transcode", "cpu"], "\(timing)")
            for stage in stages {
                let number = try #require(stage.last.flatMap { Double($0) }, "\(timing)")
                #expect(number >= 0 && stage.last?.split(separator: ".").last?.count == 1, "\(timing)")
            }
            // 2.96 ms, rounded as in the log.
            #expect(timing.contains("cpu;dur=3.0"))
            for line in ["produced a rendition", "answered"] {
                #expect(web.log.all.first { $0.message == line }?.metadata["cpu_ms"] == "3.0", "\(line)")
            }
            #expect(try await web.request("GET", target)["server-timing"] == nil)
        }
    }

    @Test func headConditionsAndRangesAreAnsweredFromMemory() async throws {
        try await WebFixture.run(paths, { $0.cacheClock = .stopped }) { web async throws in
            let target = web.target("mp4", "/a.gif")
            let whole = try await web.request("GET", target)
            let tag = try #require(whole["etag"])
            let head = try await web.request("HEAD", target)
            #expect(head.status == 200 && head.body.isEmpty && head["content-length"] == "\(whole.body.count)")
            let unchanged = try await web.request("GET", target, headers: ["If-None-Match: \(tag)"])
            #expect(unchanged.status == 304 && unchanged["cache-control"] == whole["cache-control"])
            let part = try await web.request("GET", target, headers: ["Range: bytes=0-1"])
            #expect(part.status == 206 && part.body == Array(whole.body.prefix(2)))
            #expect(part["content-range"] == "bytes 0-1/\(whole.body.count)" && part["cache-status"] == "gifreel; hit")
        }
    }

    @Test func anObjectIsImmutableAndARenditionOfASourceIsNot() async throws {
        try await WebFixture.run(
            paths,
            {
                $0.policy.head.maxAge = 500; $0.policy.head.staleFor = 30
            }
        ) { web async throws in
            let source = try await web.request("GET", web.target("mp4", "/a.gif"))
            #expect(source.permits(500, ", stale-while-revalidate=30, stale-if-error=30"))
            let upload = try await web.request("POST", "/mp4", body: Self.gif)
            let path = try #require(upload["content-location"])
            #expect(upload.permits(31536000, ", immutable"))
            // The object was stored for the source, so its prepared fields are those of a source.
            for _ in 0..<2 {
                let object = try await web.request("GET", path)
                #expect(object.status == 200 && object.body == source.body)
                #expect(object.permits(31536000, ", immutable"))
            }
            #expect(
                try await web.request("GET", web.target("mp4", "/a.gif"))["cache-control"]
                    == "public, max-age=500, stale-while-revalidate=30, stale-if-error=30")
            #expect(try await web.request("GET", path.replacing(".mp4", with: ".jpg")).status == 404)
        }
    }

    @Test func theOriginMayShortenAndForbidCaching() async throws {
        try await WebFixture.run(paths) { web async throws in
            for _ in 0..<2 {
                let short = try await web.request("GET", web.target("mp4", "/short.gif"))
                #expect(short.permits(90, ", stale-while-revalidate=604800, stale-if-error=604800"))
            }
            for _ in 0..<2 {
                let uncached = try await web.request("GET", web.target("mp4", "/private.gif"))
                #expect(uncached["cache-control"] == "no-store")
                #expect(uncached["cache-status"] == "gifreel; fwd=miss; detail=origin-forbids")
            }
            #expect(web.origin.count("/private.gif") == 2)
        }
    }

    @Test func aRenditionThatIsNotStoredIsNamedAfterItsSourceToo() async throws {
        try await WebFixture.run(paths) { web async throws in
            for format in ["mp4", "jpg", "png", "webp"] {
                let response = try await web.request("GET", web.target(format, "/private.gif"))
                #expect(response.status == 200 && response["cache-control"] == "no-store")
                #expect(response["content-disposition"] == "inline; filename=\"private.\(format)\"")
            }
            let original = try await web.request("GET", web.target("auto", "/private.gif"), headers: ["Accept: video/mp4"])
            #expect(original.status == 200 && original["cache-control"] == "no-store")
            #expect(original["content-disposition"]?.hasPrefix("inline; filename=\"private.") == true)
            for format in ["json", "html"] {
                let document = try await web.request("GET", web.target(format, "/private.gif"))
                #expect(document.status == 200 && document["content-disposition"] == nil)
            }
        }
    }

    @Test func aMountThatNegotiatesVariesByAcceptInEveryResponse() async throws {
        let origin = try LoopbackOrigin(paths)
        defer { origin.stop() }
        let configure: (inout WebFixture.Settings) throws -> Void = { settings in
            var mount = Mount(origin: try SourceURL(origin.url("/")))
            mount.negotiates = true
            mount.maxAge = 40
            settings.policy.mounts = ["media": mount]
        }
        try await WebFixture.run([:], configure) { web async throws in
            for _ in 0..<3 {
                let video = try await web.request("GET", "/media/a.gif", headers: ["Accept: video/mp4"])
                #expect(video["content-type"] == "video/mp4" && video["vary"] == "Accept")
                #expect(video.permits(40, ", stale-while-revalidate=604800, stale-if-error=604800"))
                let image = try await web.request("GET", "/media/a.gif", headers: ["Accept: image/*"])
                #expect(image["content-type"] == "image/gif" && image["vary"] == "Accept" && image.body == Self.gif)
                // The MP4 of a tiny GIF is larger than the GIF.
                let tiny = try await web.request("GET", "/media/tiny.gif", headers: ["Accept: video/mp4"])
                #expect(tiny["content-type"] == "image/gif" && tiny["vary"] == "Accept")
                let missing = try await web.request("GET", "/media/none.gif", headers: ["Accept: video/mp4"])
                #expect(missing.status == 404 && missing["vary"] == "Accept")
            }
            #expect(try await web.request("GET", "/media/tiny.mp4")["content-type"] == "video/mp4")
        }
    }

    @Test func aFailureIsRememberedAndItsResponsesAgree() async throws {
        try await WebFixture.run(paths) { web async throws in
            let target = web.target("mp4", "/none.gif")
            let first = try await web.request("GET", target)
            let second = try await web.request("GET", target)
            #expect(first["cache-status"] == "gifreel; fwd=miss")
            #expect(second["cache-status"] == "gifreel; hit; detail=negative")
            #expect(first.status == 404 && first.body == second.body && first["cache-control"] == second["cache-control"])
            #expect(web.origin.count("/none.gif") == 1)
            #expect(web.log.all.filter { $0.message == "request failed" }.count == 1)
        }
    }

    @Test func factsListRenditionsAsTheyAreStored() async throws {
        try await WebFixture.run(paths) { web async throws in
            let target = web.target("json", "/a.gif")
            let before = try await web.request("GET", target)
            #expect(before["content-type"] == "application/json")
            #expect(before.permits(60, ", stale-while-revalidate=604800, stale-if-error=604800"))
            let renditions = try #require(try before.json()["renditions"] as? [String: [String: Any]])
            #expect(Set(renditions.keys) == ["mp4", "mp4,codec=av1", "webm", "avif", "awebp", "gif", "jpg", "png", "webp"])
            #expect(renditions["mp4"]?["bytes"] == nil)
            #expect(renditions["mp4"]?["url"] as? String == web.target("mp4", "/a.gif"))

            let video = try await web.request("GET", web.target("mp4", "/a.gif"))
            let after = try await web.request("GET", target)
            let entry = try #require((try after.json()["renditions"] as? [String: [String: Any]])?["mp4"])
            #expect(entry["bytes"] as? Int == video.body.count && entry["width"] as? Int == 160)
            #expect(after["etag"] != before["etag"])
            #expect(try await web.request("GET", target, headers: ["If-None-Match: \(after["etag"] ?? "")"]).status == 304)
        }
    }
}
