import Fetch
import HTTP
import Renditions
import SystemIO
import TestSupport
import Testing

@testable import Web

@Suite("Keys have names, sources and rates of their own, and clients have limits for uploads and bytes") struct KeyTests {
    private static let gif = GIFBuilder.animation(frames: 3)
    private let paths: [String: LoopbackOrigin.Handler] = [
        "/a.gif": { _ in .ok(gif) }, "/b.gif": { _ in .ok(gif) }, "/c.gif": { _ in .ok(gif) },
    ]

    private static func key(_ name: String, _ sources: [String] = [], rate: RateLimit? = nil) throws -> SigningKey {
        SigningKey(
            secret: "the secret of the key \(name), 32 bytes", name: name,
            sources: try sources.map { try #require(SourcePattern($0)) }, rate: rate)
    }

    private func signed(_ key: SigningKey, _ url: String?, _ format: Rendition.Format = .mp4) throws -> String {
        let signer = SigningKeys([], named: [key])
        return try #require(signer.target(format.rawValue, of: try url.map { try SourceURL($0) }))
    }

    private func counts(_ web: WebFixture, _ key: String) async throws -> [String: String] {
        let text = String(decoding: try await web.request("GET", "/metrics").body, as: UTF8.self)
        var counts: [String: String] = [:]
        for line in text.split(separator: "\n") where line.hasPrefix("gifreel_key_") && line.contains("{key=\"\(key)\"}") {
            let words = line.split(separator: " ")
            counts[words[0].prefix { $0 != "{" }.dropFirst("gifreel_key_".count).description] = String(words[1])
        }
        return counts
    }

    @Test func aKeySignsForItsSourcesOnly() async throws {
        let blog = try Self.key("blog", ["127.0.0.1/a.gif"])
        let configure: (inout WebFixture.Settings) throws -> Void = {
            $0.policy.signingKeys = SigningKeys(["a plain key of 32 bytes, or of more"], named: [blog])
            $0.policy.requiresSignature = true
            $0.policy.metricsReaders = ClientList([try #require(ClientPattern("127.0.0.1"))])
        }
        try await WebFixture.run(paths, configure) { web async throws in
            #expect(try await counts(web, "blog") == ["requests_total": "0", "misses_total": "0", "refusals_total": "0"])
            let target = try signed(blog, web.origin.url("/a.gif"))
            for _ in 0..<3 { #expect(try await web.request("GET", target).status == 200) }
            let other = try await web.request("GET", try signed(blog, web.origin.url("/b.gif")))
            #expect(other.status == 403 && other.code == "source_not_allowed")
            #expect(other.detail == "The key of this request is for other sources.")
            let upload = try await web.request("POST", try signed(blog, nil), body: Self.gif)
            #expect(upload.status == 403 && upload.code == "source_not_allowed")
            #expect(web.origin.count("/b.gif") == 0)
            #expect(
                try await counts(web, "blog") == ["requests_total": "3", "misses_total": "1", "refusals_total": "2"])
        }
    }

    @Test func aPageIsSignedByTheKeyOfItsRequest() async throws {
        let blog = try Self.key("blog")
        let configure: (inout WebFixture.Settings) throws -> Void = {
            $0.policy.signingKeys = SigningKeys(["a plain key of 32 bytes, or of more"], named: [blog])
            $0.policy.requiresSignature = true
        }
        try await WebFixture.run(paths, configure) { web async throws in
            let page = try await web.request("GET", try signed(blog, web.origin.url("/a.gif"), .html))
            #expect(String(decoding: page.body, as: UTF8.self).contains(try signed(blog, web.origin.url("/a.gif"))))
        }
    }

    @Test func aRateOfAKeyBoundsItsMissesAndReplacesThatOfTheClient() async throws {
        let blog = try Self.key("blog", rate: RateLimit(perMinute: 1, burst: 2))
        let shop = try Self.key("shop")
        let configure: (inout WebFixture.Settings) throws -> Void = {
            $0.policy.signingKeys = SigningKeys([], named: [blog, shop])
            $0.policy.rateLimit = RateLimit(perMinute: 1, burst: 1)
        }
        try await WebFixture.run(paths, configure) { web async throws in
            #expect(try await web.request("GET", try signed(blog, web.origin.url("/a.gif"))).status == 200)
            #expect(try await web.request("GET", try signed(blog, web.origin.url("/b.gif"))).status == 200)
            let late = try await web.request("GET", try signed(blog, web.origin.url("/c.gif")))
            #expect(late.status == 429 && late.code == "rate_limited" && late["retry-after"] != nil)
            #expect(try await web.request("GET", try signed(blog, web.origin.url("/a.gif"))).status == 200)
            // A key without a rate is under that of the client.
            #expect(try await web.request("GET", try signed(shop, web.origin.url("/c.gif"))).status == 200)
            #expect(try await web.request("GET", try signed(shop, web.origin.url("/c.gif"), .png)).status == 429)
        }
    }

    /// A counter cannot decrease, so the first of them stays in it until another miss takes its place.
    @Test func missesThatTheServerRefusesDoNotAddUp() async throws {
        let blog = try Self.key("blog")
        let configure: (inout WebFixture.Settings) throws -> Void = {
            $0.jobs = 0
            $0.policy.signingKeys = SigningKeys([], named: [blog])
            $0.policy.requiresSignature = true
            $0.policy.metricsReaders = ClientList([try #require(ClientPattern("127.0.0.1"))])
        }
        try await WebFixture.run(paths, configure) { web async throws in
            let target = try signed(blog, web.origin.url("/a.gif"))
            for _ in 0..<5 { #expect(try await web.request("GET", target).status == 503) }
            #expect(try await counts(web, "blog") == ["requests_total": "5", "misses_total": "1", "refusals_total": "0"])
        }
    }

    @Test func uploadsAreLimitedWhetherTheyAreConvertedOrNot() async throws {
        try await WebFixture.run(paths, { $0.policy.uploadLimit = RateLimit(perMinute: 1, burst: 2) }) { web async throws in
            for _ in 0..<2 { #expect(try await web.request("POST", "/mp4", body: Self.gif).status == 200) }
            let refused = try await web.request("POST", "/mp4", body: Self.gif)
            #expect(refused.status == 429 && refused.detail == "This address has sent too many uploads.")
            #expect(try await web.request("GET", web.target("mp4", "/a.gif")).status == 200)
        }
    }

    @Test func aClientThatReceivedTooManyBytesWaits() async throws {
        try await WebFixture.run(paths, { $0.policy.byteLimit = RateLimit(perMinute: 500, burst: 500) }) { web async throws in
            #expect(try await web.request("GET", web.target("mp4", "/a.gif")).status == 200)
            // Bytes are counted when a response has ended, on another thread.
            var refused: RawHTTPResponse?
            try await waitUntil("the client is refused") {
                let response = try await web.request("GET", web.target("mp4", "/a.gif"))
                if response.status == 429 { refused = response }
                return response.status == 429
            }
            #expect(refused?.detail == "This address has received too many bytes." && refused?["retry-after"] != nil)
            #expect(try await web.request("HEAD", web.target("mp4", "/a.gif")).status == 200)
            // The form has the options that its target lacks.
            let type = "Content-Type: multipart/form-data; boundary=b"
            let form = try await web.request("POST", "/mp4?fit=cover", headers: [type], body: Array("--b--\r\n".utf8))
            #expect(form.status == 429 && form.detail == refused?.detail)
            for target in ["/healthz", "/readyz", "/"] { #expect(try await web.request("GET", target).status == 200) }
        }
    }
}
