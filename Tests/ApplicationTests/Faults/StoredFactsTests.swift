import Foundation
import Glibc
import Media
import Store
import SystemIO
import TestSupport
import Testing

@testable import Renditions
@testable import Web

@Suite("Damaged facts in the cache do not affect answers", .serialized) struct StoredFactsTests {
    private static func document(
        width: String = "16", height: String = "16", frames: String = "1", loopCount: String = "0", delays: String = "[0.1]",
        bytes: String = "100", duration: String = "0.1", placeholder: String = ""
    ) -> String {
        """
        {\(placeholder)"renditions":{},"source":{"animated":false,"bytes":\(bytes),"delays":\(delays),"duration":\(duration),\
        "frames":\(frames),"has_alpha":false,"height":\(height),"loop_count":\(loopCount),"sha256":"\(String(repeating: "a", count: 64))",\
        "transparent":false,"type":"gif","url":null,"width":\(width)}}
        """
    }

    /// The head of a WebP with an empty picture.
    private static let image = "data:image/webp;base64,UklGRgwAAABXRUJQVlA4IAAAAAA="

    private static let damaged = [
        document(loopCount: "9223372036854775807"), document(loopCount: "-1"), document(width: "9223372036854775807"),
        document(height: "0"), document(frames: "-9223372036854775808"), document(delays: "[1e300]"),
        document(bytes: "-1"), document(duration: "1e300"), document(frames: "0", delays: "[]"), "{}", "",
        document(placeholder: placeholder("red", image)),
        document(placeholder: placeholder("#ff0000", "data:image/webp;base64,HQgC")),
        document(placeholder: placeholder("#ff0000", "\\\"><script>")),
    ]

    private static func placeholder(_ color: String, _ image: String) -> String {
        "\"placeholder\":{\"dominant_color\":\"\(color)\",\"image\":\"\(image)\"},"
    }

    private func decoded(_ text: String) -> FactsDocument? {
        FactsDocument(json: Array(text.utf8))
    }

    @Test func everyNumberHasARange() throws {
        #expect(try #require(decoded(Self.document())).isInRange)
        let placeholder = Self.placeholder("#ff0000", Self.image)
        #expect(try #require(decoded(Self.document(placeholder: placeholder))).isInRange)
        for text in Self.damaged { #expect(decoded(text)?.isInRange != true, "\(text)") }
    }

    @Test func numbersBesideARenditionHaveRanges() throws {
        let good =
            #"{"width":2,"height":2,"sourceWidth":1,"sourceHeight":1,"sourceBytes":9,"frames":1,"duration":0,"timescale":100}"#
        #expect(RenditionFacts(stored: Array(good.utf8)) != nil)
        for name in ["width", "height", "sourceWidth", "sourceHeight", "sourceBytes", "frames", "duration", "timescale"] {
            let key = "\"\(name)\":"
            let start = try #require(good.range(of: key)).upperBound
            let end = try #require(good[start...].firstIndex { $0 == "," || $0 == "}" })
            for value in ["-1", "9223372036854775807", "-9223372036854775808"] {
                let bad = good.replacingCharacters(in: start..<end, with: value)
                #expect(RenditionFacts(stored: Array(bad.utf8)) == nil, "\(bad)")
            }
        }
        for (codecs, isValid) in [
            ("avc1.64001f", true), ("", false), ("a\\\"b", false), (String(repeating: "a", count: 65), false),
        ] {
            let text = good.dropLast() + ",\"codecs\":\"\(codecs)\"}"
            #expect((RenditionFacts(stored: Array(text.utf8)) != nil) == isValid, "\(text)")
        }
        let loop = good.dropLast() + #","loopCount":65536}"#
        #expect(RenditionFacts(stored: Array(loop.utf8)) == nil)
    }

    /// Stores a document as the facts of a source, the way a server does.
    private func store(_ text: String, of url: String, in directory: URL) async throws {
        var configuration = CacheConfiguration()
        configuration.directory = directory.appendingPathComponent("cache").path
        configuration.minFreeBytes = 0
        let cache = try Cache(configuration: configuration)
        defer { cache.close() }
        let staged = try await cache.stage(expecting: 0)
        let bytes = Array(text.utf8)
        try #require(pwrite(staged.descriptor.number, bytes, bytes.count, 0) == bytes.count)
        let rendition = Rendition(format: .json)
        let digest = try #require(SourceDigest(hex: String(repeating: "a", count: 64)))
        let alias = AliasRecord(
            key: AliasKey(sourceURL: url, rendition: rendition.canonicalText), sourceURL: url,
            rendition: rendition.canonicalText, times: OriginTimes(fetchedAt: Int64(Date().timeIntervalSince1970)))
        let id = ObjectID(
            source: digest, rendition: rendition.canonicalText, encoderVersion: rendition.encoderVersion(of: .gif))
        let outcome = try await cache.publish(
            staged, as: id, fileExtension: "json", facts: [], alias: alias, epoch: cache.epoch, storing: true)
        guard case .stored = outcome else { throw SystemError("publish", code: EIO) }
    }

    @Test func factsOfAnOlderVersionHaveNoPlaceholder() async throws {
        let url = "https://a.test/a.gif"
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("gifreel-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        try await store(Self.document(), of: url, in: directory)
        let server = try GifreelProcess(directory: directory)
        let facts = try server.request("GET", "/json/\(url)")
        #expect(facts.status == 200 && facts["cache-status"] == "gifreel; hit")
        #expect(!String(decoding: facts.body, as: UTF8.self).contains("placeholder"))
        let page = try server.request("GET", "/html/\(url)")
        #expect(page.status == 200 && !String(decoding: page.body, as: UTF8.self).contains("id=\"blur\""))
    }

    @Test(arguments: [damaged[0], damaged[2], damaged[5], damaged[9]])
    func damagedFactsAreDroppedAndComputedAgain(_ text: String) async throws {
        let gif = GIFBuilder.animation(frames: 3, width: 16, height: 16)
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }])
        defer { origin.stop() }
        let url = origin.url("/a.gif")
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("gifreel-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        try await store(text, of: url, in: directory)
        let server = try GifreelProcess(directory: directory)
        #expect(try server.request("GET", "/html/\(url)").status == 200)
        let facts = try server.request("GET", "/json/\(url)")
        #expect(facts.status == 200 && facts["cache-status"] == "gifreel; hit")
        #expect(String(decoding: facts.body, as: UTF8.self).contains("\"frames\":3"))
        let metrics = try server.request("GET", "/metrics")
        #expect(String(decoding: metrics.body, as: UTF8.self).contains("gifreel_cache_corrupt_total 1"))
        #expect(server.isRunning)
    }
}
