import HTTP
import TestSupport
import Testing

@testable import Web

@Suite("Scripts of other origins may read every response, and no browser guesses its type") struct CrossOriginTests {
    private static let gif = GIFBuilder.animation(frames: 3)
    private static let exposed =
        "Content-Location, Content-Disposition, ETag, Cache-Status, Server-Timing, Location, Retry-After, Accept-Ranges, Content-Range, "
        + "X-Request-Id"

    /// A request for each kind of response, with its status.
    private func requests(_ web: WebFixture) async throws -> [(String, String, [String], [UInt8], Int)] {
        let object = try #require(try await web.request("POST", "/mp4", body: Self.gif)["content-location"])
        let video = web.target("mp4", "/a.gif")
        let token = ["Authorization: Bearer secret"]
        let prefer = ["Prefer: respond-async"]
        let status = try #require(try await web.request("GET", web.target("jpg", "/a.gif"), headers: prefer)["location"])
        return [
            ("GET", video, [], [], 200), ("GET", video, [], [], 200), ("HEAD", video, [], [], 200),
            ("GET", video, ["Range: bytes=0-1"], [], 206), ("GET", video, ["If-None-Match: *"], [], 304),
            ("GET", video, ["If-Match: \"x\""], [], 412), ("GET", video, ["Range: bytes=999999-"], [], 416),
            ("GET", object, [], [], 200), ("GET", web.target("json", "/a.gif"), [], [], 200),
            ("GET", web.target("html", "/a.gif"), [], [], 200), ("GET", "/oembed?url=\(web.origin.url("/a.gif"))", [], [], 200),
            ("GET", "/", [], [], 200), ("GET", "/healthz", [], [], 200), ("GET", "/readyz", [], [], 200),
            ("GET", "/metrics", token, [], 200), ("GET", "/metrics", [], [], 401), ("GET", "/cache", token, [], 200),
            ("GET", "/cache", [], [], 401), ("DELETE", "/cache?all=true", token, [], 200), ("PURGE", video, token, [], 200),
            ("GET", web.target("mp4", "/none.gif"), [], [], 404), ("GET", web.target("mp4", "/none.gif"), [], [], 404),
            ("GET", web.target("mp4", "/page.gif"), [], [], 415), ("GET", web.target("mp4,quality=0", "/a.gif"), [], [], 400),
            ("GET", web.target("html", "/none.gif"), ["Accept: text/html"], [], 404), ("GET", "/nothing", [], [], 404),
            ("DELETE", video, [], [], 405), ("POST", "/mp4", [], Self.gif, 200), ("POST", "/mp4", [], [1, 2, 3], 415),
            ("POST", "/mp4", ["Content-Type: multipart/form-data; boundary=b"], [1], 400), ("POST", "/prewarm", [], [1], 401),
            ("POST", "/prewarm", token, Array("{}".utf8), 400), ("GET", "/prewarm/1", token, [], 404),
            ("GET", video, ["Bad Field: x"], [], 400), ("GET", video, ["CDN-Loop: gifreel"], [], 403),
            ("GET", "/facts.js?url=\(web.origin.url("/a.gif"))", [], [], 200), ("POST", "/facts", [], Array("[]".utf8), 200),
            ("GET", "/openapi.json", [], [], 200), ("GET", "/gifreel.js", [], [], 200), ("GET", status, [], [], 200),
            ("GET", status, ["Accept: text/event-stream"], [], 200),
        ]
    }

    @Test(arguments: ["*", "https://page.test", nil]) func everyResponseHasTheFieldsOnce(_ allowed: String?) async throws {
        let paths: [String: LoopbackOrigin.Handler] = [
            "/a.gif": { _ in .ok(Self.gif) }, "/page.gif": { _ in .ok(Array("<html>".utf8)) },
        ]
        try await WebFixture.run(
            paths,
            {
                $0.policy.head.allowOrigin = allowed; $0.policy.adminToken = "secret"
            }
        ) { web async throws in
            for (method, target, headers, body, status) in try await requests(web) {
                let response = try await web.request(method, target, headers: headers, body: body)
                let label = "\(method) \(target) \(headers)"
                #expect(response.status == status, "\(label)")
                #expect(response["access-control-allow-origin"] == allowed, "\(label)")
                #expect(response["timing-allow-origin"] == allowed, "\(label)")
                let isDocument = !response.body.isEmpty && response["content-type"]?.hasPrefix("text/plain") != true
                #expect(response.fieldCount("x-content-type-options") == 1 || !isDocument, "\(label)")
                #expect(response["access-control-expose-headers"] == allowed.map { _ in Self.exposed }, "\(label)")
                #expect(response.fieldCount("access-control-allow-origin") == (allowed == nil ? 0 : 1), "\(label)")
            }
        }
    }

    /// Their images and videos need the permission of the response, unless the elements ask for one with `crossorigin`.
    @Test func pagesWithAnEmbedderPolicyMayShowRenditionsAndSources() async throws {
        try await WebFixture.run(["/a.gif": { _ in .ok(Self.gif) }]) { web async throws in
            let object = try #require(try await web.request("POST", "/mp4", body: Self.gif)["content-location"])
            let (source, video) = (web.target("auto", "/a.gif"), web.target("mp4", "/a.gif"))
            for (target, headers, status) in [
                (source, [], 200), (video, [], 200), (video, [], 200), (video, ["Range: bytes=0-1"], 206),
                (web.target("jpg", "/a.gif"), [], 200), (object, [], 200), (web.target("html", "/a.gif"), [], 200),
            ] as [(String, [String], Int)] {
                let response = try await web.request("GET", target, headers: headers)
                #expect(response.status == status, "\(target)")
                #expect(response["cross-origin-resource-policy"] == "cross-origin", "\(target)")
                #expect(response.fieldCount("cross-origin-resource-policy") == 1, "\(target)")
            }
        }
    }

    @Test func metricsThatAnAddressOpensAreNotForScripts() async throws {
        try await WebFixture.run([:]) {
            $0.policy.adminToken = "secret"
            $0.policy.metricsReaders = ClientList([try #require(ClientPattern("127.0.0.0/8"))])
        } _: { web async throws in
            for (headers, allowed) in [
                ([], nil), (["Authorization: Bearer wrong"], nil), (["Authorization: Bearer secret"], "*"),
            ] as [([String], String?)] {
                let response = try await web.request("GET", "/metrics", headers: headers)
                #expect(response.status == 200 && response["access-control-allow-origin"] == allowed, "\(headers)")
                #expect(response["timing-allow-origin"] == allowed)
            }
        }
    }

    @Test func aPreflightAllowsEveryMethodAndNamesThoseOfItsRoute() async throws {
        try await WebFixture.run([:], { $0.policy.adminToken = "secret" }) { web async throws in
            let object = "/object/\(String(repeating: "0", count: 64)).mp4"
            for (target, methods) in [
                ("/mp4", "POST, OPTIONS"), (web.target("mp4", "/a.gif"), "GET, HEAD, OPTIONS, PURGE"),
                (object, "GET, HEAD, OPTIONS, PURGE"), ("/cache", "GET, HEAD, DELETE, OPTIONS"),
                ("/prewarm", "GET, HEAD, POST, OPTIONS"), ("/prewarm/1", "GET, HEAD, DELETE, OPTIONS"),
                ("/", "GET, HEAD, OPTIONS"),
                ("/metrics", "GET, HEAD, OPTIONS"), ("/oembed?url=x", "GET, HEAD, OPTIONS"),
                ("/nothing", "GET, HEAD, POST, DELETE, PURGE, OPTIONS"), ("*", "GET, HEAD, POST, DELETE, PURGE, OPTIONS"),
            ] {
                let response = try await web.request("OPTIONS", target, headers: ["Access-Control-Request-Method: PURGE"])
                #expect(response.status == 204 && response["allow"] == methods, "\(target)")
                #expect(response["access-control-allow-methods"] == "GET, HEAD, POST, DELETE, PURGE, OPTIONS", "\(target)")
                #expect(response["access-control-allow-headers"] == "*, Authorization", "\(target)")
                #expect(response["access-control-max-age"] == "86400", "\(target)")
            }
        }
    }

    @Test func withoutAnAllowedOriginAPreflightNamesOnlyTheMethods() async throws {
        try await WebFixture.run([:], { $0.policy.head.allowOrigin = nil }) { web async throws in
            let response = try await web.request("OPTIONS", "/mp4")
            #expect(response.status == 204 && response["allow"] == "POST, OPTIONS")
            #expect(response.headers.keys.allSatisfy { !$0.hasPrefix("access-control-") })
        }
    }
}
