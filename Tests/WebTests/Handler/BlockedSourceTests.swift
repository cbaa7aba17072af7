import Media
import TestSupport
import Testing

@testable import Renditions
@testable import Web

@Suite("A source whose pictures are on the block list is answered 451", .timeLimit(.minutes(10)))
struct BlockedSourceTests {
    /// Tiles in the colours of the palette that move.
    private static func gif(_ width: Int, _ height: Int, delay: Int = 10, kind: Int = 5) -> [UInt8] {
        var builder = GIFBuilder(width: width, height: height)
        for frame in 0..<4 {
            let pixels = (0..<width * height).map { index in
                let (x, y) = (index % width, index / width)
                return UInt8(((x * 9 / width) * 3 + (y * 7 / height) * kind + x * y * 30 / (width * height) + frame) % 8)
            }
            builder.add(GIFBuilder.Frame(width: width, height: height, pixels: pixels)) { $0.delay = delay }
        }
        return builder.finish()
    }

    /// The list with the pictures of a GIF.
    private static func list(of gif: [UInt8]) async throws -> BlockList {
        var lines = ""
        try await WebFixture.run { web async throws in
            let facts = try await web.request("POST", "/json?facts=fingerprints", body: gif).json()
            for fingerprint in try #require(facts["fingerprints"] as? [[String: Any]]) {
                lines += "pdq:\(try #require(fingerprint["pdq"] as? String)) case 17\n"
            }
        }
        #expect(!lines.isEmpty)
        return try Array(lines.utf8).withUnsafeBytes { try BlockList($0) }
    }

    private func run(_ body: (WebFixture) async throws -> Void) async throws {
        let list = try await Self.list(of: Self.gif(200, 150))
        let (variant, other) = (Self.gif(120, 90, delay: 4), Self.gif(200, 150, kind: 2))
        try await WebFixture.run(
            ["/a.gif": { _ in .ok(variant) }, "/b.gif": { _ in .ok(other) }, "/c.gif": { _ in .ok(Array("GIF89a".utf8)) }],
            {
                $0.blocks = list
                $0.policy.adminToken = "secret"
            }, body)
    }

    @Test func aVariantIsRefusedAndRemembered() async throws {
        try await run { web async throws in
            let first = try await web.request("GET", web.target("mp4", "/a.gif"))
            #expect(first.status == 451 && first.code == "blocked")
            #expect(first.detail == "The operator of this server has blocked the source.")
            #expect(!first.text.contains("case 17"))
            let again = try await web.request("GET", web.target("jpg", "/a.gif"))
            #expect(again.status == 451 && again["cache-status"] == "gifreel; hit; detail=negative")
            #expect(web.origin.count("/a.gif") == 1)
        }
    }

    @Test func aRefusalIsCountedAndLoggedByLabel() async throws {
        try await run { web async throws in
            _ = try await web.request("GET", web.target("mp4", "/a.gif"))
            let metrics = try await web.request("GET", "/metrics", headers: ["Authorization: Bearer secret"]).text
            #expect(metrics.contains("gifreel_blocked_sources_total 1"))
            #expect(web.log.all.contains { $0.metadata["label"] == "case 17" && $0.metadata["source_host"] == "127.0.0.1" })
        }
    }

    @Test func anUploadIsRefused() async throws {
        try await run { web async throws in
            let upload = try await web.request("POST", "/mp4", body: Self.gif(300, 225))
            #expect(upload.status == 451 && upload.code == "blocked")
            #expect(try await web.request("POST", "/mp4", body: Self.gif(200, 150, kind: 2)).status == 200)
        }
    }

    /// The source is what such a request gets while the rendition is made.
    @Test func aRequestThatDoesNotWaitGetsNothingOfIt() async throws {
        try await run { web async throws in
            #expect(try await web.request("GET", web.target("auto", "/a.gif")).status == 451)
            let other = try await web.request("GET", web.target("auto", "/b.gif"))
            #expect(other.status == 200 && other.body == Self.gif(200, 150, kind: 2))
        }
    }

    @Test func itsOwnFingerprintsAreRefusedToo() async throws {
        try await run { web async throws in
            #expect(try await web.request("GET", web.target("json,facts=fingerprints", "/a.gif")).status == 451)
        }
    }

    @Test func anotherSourceIsConvertedAndComparedOnce() async throws {
        try await run { web async throws in
            #expect(try await web.request("GET", web.target("mp4", "/b.gif")).status == 200)
            // The fingerprints are stored.
            let facts = try await web.request("GET", web.target("json,facts=fingerprints", "/b.gif"))
            #expect(facts["cache-status"] == "gifreel; hit")
        }
    }

    @Test func aSourceThatCannotBeDecodedHasItsOwnProblem() async throws {
        try await run { web async throws in
            #expect(try await web.request("GET", web.target("mp4", "/c.gif")).code == "corrupt_gif")
        }
    }
}
