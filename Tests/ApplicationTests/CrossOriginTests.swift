import Foundation
import Settings
import TestSupport
import Testing

@testable import gifreel

@Suite("Pages of other origins may use every answer", .timeLimit(.minutes(10))) struct CrossOriginTests {
    private let gif = GIFBuilder.animation(frames: 3)

    private static let exposed =
        "Content-Location, Content-Disposition, ETag, Cache-Status, Server-Timing, Location, Retry-After, Accept-Ranges, Content-Range, "
        + "X-Request-Id"

    private func expectReadable(_ answer: RawHTTPResponse, _ target: String, origin: String = "*") {
        #expect(answer["access-control-allow-origin"] == origin, "\(target): \(answer.status)")
        #expect(answer["timing-allow-origin"] == origin, "\(target): \(answer.status)")
        #expect(answer["access-control-expose-headers"] == Self.exposed, "\(target): \(answer.status)")
        #expect(answer.fieldCount("access-control-allow-origin") == 1, "\(target): \(answer.status)")
    }

    @Test func preflightsOfEveryRouteAndMethodAreAnswered() throws {
        let server = try GifreelProcess([
            "mounts.media.origin=http://a.test/", "signing.keys=an-example-key-of-at-least-32-bytes",
        ])
        for target in [
            "/mp4", "/mp4,quality=5", "/mp4?quality=5", "/jpg", "/json", "/mp4/http://a.test/a.gif", "/mp4?url=http://a.test/",
            "/media/a.mp4", "/object/\(String(repeating: "0", count: 64)).mp4", "/cache?all=true", "/prewarm", "/prewarm/1",
            "/metrics", "/healthz", "/readyz", "/", "/oembed", "/mp4,quality=0/http://a.test/", "/nothing", "*",
        ] {
            for method in ["POST", "GET", "DELETE", "PURGE"] {
                let answer = try server.request(
                    "OPTIONS", target,
                    headers: [
                        "Origin: https://page.test", "Access-Control-Request-Method: \(method)",
                        "Access-Control-Request-Headers: content-type,authorization,x-own",
                    ])
                #expect(answer.status == 204 && answer["access-control-allow-origin"] == "*", "\(target)")
                #expect(answer["access-control-allow-methods"]?.contains(method) == true, "\(target)")
                #expect(answer["access-control-allow-headers"] == "*, Authorization", "\(target)")
            }
        }
        #expect(try server.request("OPTIONS", "/mp4")["allow"] == "POST, OPTIONS")
        #expect(try server.request("OPTIONS", "/mp4?url=http://a.test/")["allow"] == "GET, HEAD, OPTIONS")
    }

    @Test func everyAnswerCanBeReadByScripts() throws {
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }, "/bad.gif": { _ in .ok(Array("<html>".utf8)) }])
        defer { origin.stop() }
        let server = try GifreelProcess(["admin.token=secret", "sources.max_bytes=64KiB"])
        let url = origin.url("/a.gif")
        let id = try #require(try server.request("POST", "/mp4", body: gif)["content-location"])
        let form = "Content-Type: multipart/form-data; boundary=b"
        let cases: [(String, String, [String], [UInt8], Int)] = [
            ("GET", "/mp4/\(url)", [], [], 200), ("GET", "/mp4/\(url)", [], [], 200), ("GET", "/mp4/\(url)", [], [], 200),
            ("HEAD", "/mp4/\(url)", [], [], 200), ("GET", "/mp4/\(url)", ["Range: bytes=0-1"], [], 206),
            ("GET", "/mp4/\(url)", ["Range: bytes=0-1,4-5"], [], 206), ("GET", "/mp4/\(url)", ["If-None-Match: *"], [], 304),
            ("GET", "/mp4/\(url)", ["If-Match: \"x\""], [], 412), ("GET", "/mp4/\(url)", ["Range: bytes=999999-"], [], 416),
            ("GET", id, [], [], 200), ("GET", "/json/\(url)", [], [], 200), ("GET", "/html/\(url)", [], [], 200),
            ("GET", "/oembed?url=\(url)", [], [], 200), ("GET", "/", [], [], 200), ("GET", "/healthz", [], [], 200),
            ("GET", "/readyz", [], [], 200), ("GET", "/metrics", ["Authorization: Bearer secret"], [], 200),
            ("GET", "/cache", [], [], 401),
            ("GET", "/cache", ["Authorization: Bearer secret"], [], 200), ("DELETE", "/cache?x=y", [], [], 401),
            ("GET", "/mp4/\(origin.url("/none.gif"))", [], [], 404), ("GET", "/mp4/\(origin.url("/none.gif"))", [], [], 404),
            ("GET", "/mp4/\(origin.url("/bad.gif"))", [], [], 415), ("GET", "/mp4,quality=0/\(url)", [], [], 400),
            ("GET", "/html/\(origin.url("/none.gif"))", ["Accept: text/html"], [], 404), ("GET", "/nothing", [], [], 404),
            ("DELETE", "/mp4/\(url)", [], [], 405), ("POST", "/mp4/\(url)", [], gif, 405), ("POST", "/mp4", [], gif, 200),
            ("POST", "/mp4", [], [1, 2, 3], 415), ("POST", "/mp4", [form], [1], 400),
            ("POST", "/mp4", [], [UInt8](repeating: 1, count: 70_000), 413), ("POST", "/prewarm", [], [1], 401),
            ("GET", "/mp4/\(String(repeating: "a", count: 40_000))", [], [], 414),
            ("GET", "/mp4/\(url)", ["Bad Field: x"], [], 400), ("GET", "/mp4/\(url)", ["Host: a", "Host: b"], [], 400),
            ("GET", "/mp4/http://10.0.0.1/", [], [], 403),
        ]
        for (method, target, headers, body, status) in cases {
            let answer = try server.request(method, target, headers: headers, body: body)
            #expect(answer.status == status, "\(method) \(target.prefix(80)) \(headers)")
            expectReadable(answer, "\(method) \(target.prefix(80)) \(headers)")
        }
    }

    @Test func theAllowedOriginIsASetting() throws {
        let server = try GifreelProcess(["server.allow_origin=https://page.test"])
        for target in ["/healthz", "/nothing"] {
            expectReadable(try server.request("GET", target), target, origin: "https://page.test")
        }
        let closed = try GifreelProcess(["server.allow_origin="])
        for (method, target) in [("GET", "/healthz"), ("GET", "/nothing"), ("OPTIONS", "/mp4"), ("GET", "/")] {
            #expect(try closed.request(method, target).headers.keys.allSatisfy { !$0.hasPrefix("access-control-") })
        }
    }

    @Test func anOriginThatNoBrowserSendsIsRefused() throws {
        for origin in [
            "*", "null", "https://page.test", "http://page.test:8080", "http://127.0.0.1:3000", "http://[::1]:3000",
            "https://xn--bcher-kva.test", "capacitor://localhost", "httpapp://localhost",
        ] {
            try SettingParser.checkOrigin(origin, "server.allow_origin")
        }
        for origin in [
            "page.test", "https://page.test/", "https://page.test/a", "https://Page.test", "https://page.test:443",
            "https://", "https://*.page.test", "https://a.test, https://b.test", "https://a.test,https://b.test",
            "https://a.test https://b.test", "https://bücher.test", "HTTPS://page.test", "capacitor://localhost/",
            "https://page.test?a", "https://user@page.test", "https://page.test:65536", "https://page.test\\", "https://[::1",
            "https://1.2.3.08",
        ] {
            #expect(throws: SettingsError.self, "\(origin)") { try SettingParser.checkOrigin(origin, "server.allow_origin") }
        }
    }
}
