import Foundation
import TestSupport
import Testing

@Suite("Errors are problem documents", .timeLimit(.minutes(10))) struct ErrorTests {
    private struct Problem: Decodable {
        var type: String
        var title: String
        var status: Int
        var detail: String
        var code: String
    }

    private func expect(_ answer: RawHTTPResponse, _ status: Int, _ code: String, _ word: String? = nil) throws {
        #expect(answer.status == status)
        #expect(answer["content-type"] == "application/problem+json")
        let problem = try JSONDecoder().decode(Problem.self, from: Data(answer.body))
        #expect(problem.status == status && problem.code == code)
        if let word { #expect(problem.detail.contains(word), "\(problem.detail)") }
        // No internal detail is revealed.
        #expect(!answer.text.contains("/tmp") && !answer.text.contains("Error Domain"))
    }

    @Test func errorsOfASourceNameTheirCause() throws {
        let gif = GIFBuilder.animation()
        var image = APNGBuilder(width: 4, height: 4, plays: nil)
        image.addPicture(.init(width: 4, height: 4, word: 0xff00_00ff))
        let still = image.finish()
        let origin = try LoopbackOrigin([
            "/page.gif": { _ in .ok(Array("<!doctype html><html></html>".utf8)) },
            "/image.gif": { _ in .ok(still) },
            "/half.gif": { _ in .ok(Array(gif.prefix(60))) },
            "/none.gif": { _ in .ok(GIFBuilder(width: 4, height: 4).finish()) },
            "/wide.gif": { _ in .ok(GIFBuilder(width: 5000, height: 2).finish()) },
            "/long.gif": { _ in .ok(Array("GIF89a".utf8) + [UInt8](repeating: 0, count: 70_000)) },
            "/gone.gif": { _ in .status(410) },
            "/sick.gif": { _ in .status(500) },
            "/short.gif": { _ in .raw("HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n", Array(gif.prefix(100))) },
        ])
        defer { origin.stop() }
        let server = try GifreelProcess(["sources.max_bytes=64KiB"])
        let cases: [(String, Int, String, String?)] = [
            ("/page.gif", 415, "not_an_animation", "HTML"), ("/image.gif", 415, "not_an_animation", "PNG"),
            ("/half.gif", 422, "corrupt_gif", "incomplete"), ("/none.gif", 422, "corrupt_gif", "no frames"),
            ("/wide.gif", 422, "too_large", "5000"), ("/long.gif", 422, "too_large", "65536"),
            ("/missing.gif", 404, "source_not_found", nil), ("/gone.gif", 410, "source_gone", nil),
            ("/sick.gif", 502, "source_failed", "500"), ("/short.gif", 502, "source_failed", nil),
        ]
        for (path, status, code, word) in cases {
            try expect(server.mp4(origin.url(path)), status, code, word)
        }
        #expect(server.storedObjects().isEmpty)
        #expect(server.isRunning)
    }

    @Test func sourcesThatMayNotOrCannotBeReachedAreRefused() throws {
        let server = try GifreelProcess(["sources.connect_timeout=30s", "sources.timeout=30s"])
        try expect(server.mp4("http://127.0.0.1:1/a.gif"), 502, "source_unreachable")
        try expect(server.mp4("http://no-such-host.invalid/a.gif"), 502, "source_unreachable")
        try expect(server.mp4("http://10.0.0.1/a.gif"), 403, "source_not_allowed")
        try expect(server.mp4("http://[::1]/a.gif"), 403, "source_not_allowed")
        try expect(server.mp4("http://169.254.169.254/latest/meta-data"), 403, "source_not_allowed")
    }

    @Test func aSourceThatSaysNothingIsATimeout() throws {
        let origin = try LoopbackOrigin(["/a.gif": { _ in LoopbackAnswer(steps: [.hang]) }])
        defer { origin.stop() }
        let server = try GifreelProcess(["sources.timeout=1s"])
        try expect(server.mp4(origin.url("/a.gif")), 504, "source_timeout")
    }

    @Test func requestsThatMakeNoSenseAreRefused() throws {
        let server = try GifreelProcess()
        let cases: [(String, Int, String, String?)] = [
            ("/mp4", 400, "bad_source_url", nil), ("/mp4/ftp://example.com/a.gif", 400, "bad_source_url", nil),
            ("/mp4?url=http%3A%2F%2Fuser%3Apw%40example.com%2Fa.gif", 400, "bad_source_url", nil),
            ("/mp4?url=%zz", 400, "bad_request", nil), ("/mp4,quality=0/http://a.test/a.gif", 400, "bad_option", "quality"),
            ("/mp4,bg=xyz/http://a.test/a.gif", 400, "bad_option", "bg"),
            ("/mp4,nonsense=1/http://a.test/a.gif", 400, "bad_option", "nonsense"),
            ("/mp4?url=http://a.test/a.gif&quality=5&quality=6", 400, "bad_option", "quality"),
            ("/mp4,quality=5?url=http://a.test/a.gif&quality=5", 400, "bad_option", "quality"),
            ("/nothing", 404, "not_found", nil), ("//", 404, "not_found", nil), ("/object/12.mp4", 404, "not_found", nil),
            ("/object/\(String(repeating: "0", count: 64)).mp4", 404, "not_found", nil), ("/cache", 404, "not_found", nil),
        ]
        for (target, status, code, word) in cases { try expect(server.request("GET", target), status, code, word) }
        let wrong = try server.request("DELETE", "/mp4/http://a.test/a.gif")
        try expect(wrong, 405, "method_not_allowed")
        #expect(wrong["allow"] == "GET, HEAD, OPTIONS")
    }

    @Test func uploadsAreJudgedByTheirBytes() throws {
        let server = try GifreelProcess(["sources.max_bytes=64KiB"])
        try expect(
            server.request("POST", "/mp4", body: Array("hello, this is a text and no picture".utf8)), 415, "not_an_animation",
            "text")
        try expect(server.request("POST", "/mp4", headers: ["Content-Length: 0"]), 415, "not_an_animation", "empty")
        var client = try RawHTTPClient(port: server.port)
        try client.send(Array("POST /mp4 HTTP/1.1\r\nHost: a\r\nContent-Length: 70000\r\nExpect: 100-continue\r\n\r\n".utf8))
        #expect(try client.readResponse().status == 413)
    }
}
