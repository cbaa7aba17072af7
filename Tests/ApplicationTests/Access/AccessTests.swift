import Foundation
import TestSupport
import Testing

@testable import Web

@Suite("Access control over a socket", .timeLimit(.minutes(10))) struct AccessTests {
    private static let key = "an-example-key-of-at-least-32-bytes"
    private let gif = GIFBuilder.animation(frames: 3)

    private struct Answer: Decodable {
        var code: String
        var detail: String
    }

    private func expect(_ answer: RawHTTPResponse, _ status: Int, _ code: String) throws {
        #expect(answer.status == status, "\(answer.text)")
        #expect(answer["content-type"] == "application/problem+json" && answer["cache-control"] == "no-store")
        #expect(try JSONDecoder().decode(Answer.self, from: Data(answer.body)).code == code)
    }

    private func sign(_ arguments: String...) throws -> String {
        try GifreelCommandLine.run(["sign", "--set", "signing.keys=\(Self.key)"] + arguments).output
    }

    @Test func withKeysOnlySignedRequestsAreAnswered() throws {
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }])
        defer { origin.stop() }
        let server = try GifreelProcess(["signing.keys=\(Self.key)", "mounts.media.origin=\(origin.url("/"))"])
        let url = origin.url("/a.gif")
        for target in ["/mp4/\(url)", "/mp4?url=\(url)", "/mp4,quality=9,sig=AAAA/\(url)", "/media/a.mp4", "/media/a.gif"] {
            try expect(try server.request("GET", target), 403, "bad_signature")
            #expect(try server.request("HEAD", target).status == 403)
        }
        try expect(try server.request("POST", "/mp4", body: gif), 403, "bad_signature")
        #expect(origin.connections == 0)

        let signed = try sign(url)
        let first = try server.request("GET", signed)
        #expect(first.status == 200 && first["cache-status"] == "gifreel; fwd=miss; stored")
        for method in ["GET", "HEAD"] { #expect(try server.request(method, signed)["cache-status"] == "gifreel; hit") }
        // A rendition in memory also requires the signature.
        try expect(try server.request("GET", "/mp4/\(url)"), 403, "bad_signature")
        try expect(try server.request("GET", signed.replacing("sig=", with: "sig=A")), 403, "bad_signature")

        let upload = try server.request("POST", try sign("--upload", "quality=30"), body: gif)
        #expect(upload.status == 200)
        // An object's name is known only to those who were given it.
        #expect(try server.request("GET", try #require(upload["content-location"])).status == 200)
        #expect(try server.request("GET", "/healthz").status == 200)
        #expect(!server.log.contains(Self.key))
    }

    @Test func aSignedRequestIsAnsweredAndKeptNoLongerThanItHolds() throws {
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }])
        defer { origin.stop() }
        let server = try GifreelProcess(["signing.keys=\(Self.key)"])
        let url = origin.url("/a.gif")
        try expect(try server.request("GET", try sign(url, "--expires", "1000000000")), 403, "expired_signature")
        #expect(origin.connections == 0)
        let brief = try sign(url, "--expires", "3s")
        var answer = try server.request("GET", brief)
        #expect(answer.status == 200 || answer.status == 403)
        try blockUntil("the end of the signature's validity") {
            if answer.status != 200 { return true }
            let age = try #require(answer["cache-control"]?.split(separator: "=").last.flatMap { Int($0) })
            #expect((0...3).contains(age), "\(answer["cache-control"] ?? "")")
            answer = try server.request("GET", brief)
            return false
        }
        // The expiry ends even a hot rendition.
        try expect(answer, 403, "expired_signature")
        let long = try server.request("GET", try sign(url, "--expires", "30d"))
        #expect(
            long.status == 200
                && long.permits(86400, ", stale-while-revalidate=604800, stale-if-error=604800"))
    }

    @Test func aServiceThatHasToBeSignedDoesNotStartWithoutKeys() throws {
        for settings in [
            ["sources.require_signature=true"], ["mounts.a.origin=http://a.test/", "mounts.a.require_signature=true"],
        ] {
            do {
                _ = try GifreelProcess(settings)
                Issue.record("started")
            } catch let error as GifreelProcess.NotStarted {
                #expect(error.log.contains("signing.keys holds no key"))
            }
        }
    }

    @Test func prefixesOfANAT64AreReadOrStopTheStart() throws {
        let good = try GifreelCommandLine.run([
            "serve", "--check", "--set", "sources.nat64_prefixes=64:ff9b::/96,2001:db8::/32",
        ])
        #expect(good.code == 0 && good.output.contains("sources.nat64_prefixes: 64:ff9b::/96,2001:db8::/32"))
        for text in ["64:ff9b::/97", "10.0.0.0/8", "64:ff9b::1/96", "anything"] {
            let bad = try GifreelCommandLine.run(["serve", "--check", "--set", "sources.nat64_prefixes=\(text)"])
            #expect(bad.code == 1 && bad.log.contains("sources.nat64_prefixes"), "\(bad.log)")
        }
    }

    @Test func aMountMayBeUnsignedWhereEverythingElseIsSigned() throws {
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }])
        defer { origin.stop() }
        let server = try GifreelProcess([
            "signing.keys=\(Self.key)", "mounts.media.origin=\(origin.url("/"))", "mounts.media.require_signature=false",
        ])
        #expect(try server.request("GET", "/media/a.mp4").status == 200)
        try expect(try server.request("GET", "/mp4/\(origin.url("/a.gif"))"), 403, "bad_signature")
        try expect(try server.request("GET", "/media/a.mp4?sig=AAAA"), 403, "bad_signature")
    }

    @Test func aRedirectDoesNotStandInForTheSignatureOfAMount() throws {
        let gif = gif
        let origin = try LoopbackOrigin(["/signed/a.gif": { _ in .ok(gif) }])
        defer { origin.stop() }
        origin.on("/open.gif", .redirect(to: "/signed/a.gif"))
        let server = try GifreelProcess([
            "signing.keys=\(Self.key)", "sources.require_signature=false", "mounts.media.origin=\(origin.url("/signed/"))",
            "mounts.media.require_signature=true",
        ])
        try expect(try server.request("GET", "/mp4/\(origin.url("/open.gif"))"), 403, "source_not_allowed")
        #expect(origin.count("/signed/a.gif") == 0)
        #expect(try server.request("GET", sign(origin.url("/signed/a.gif"))).status == 200)
    }

    @Test func missesAreLimitedAndHitsAreNot() throws {
        let origin = try LoopbackOrigin()
        defer { origin.stop() }
        for name in ["a", "b", "c"] {
            origin.on("/\(name).gif", .ok(GIFBuilder.animation(frames: 2, delay: name == "a" ? 5 : 6)))
        }
        let server = try GifreelProcess([
            "rate_limit.misses_per_minute=1", "rate_limit.burst=2", "server.trusted_proxies=127.0.0.1",
        ])
        let client = ["X-Forwarded-For: 192.0.2.1"]
        #expect(try server.mp4(origin.url("/a.gif"), headers: client).status == 200)
        #expect(try server.mp4(origin.url("/b.gif"), headers: client).status == 200)
        let refused = try server.mp4(origin.url("/c.gif"), headers: client)
        try expect(refused, 429, "rate_limited")
        let wait = try #require(refused["retry-after"].flatMap { Int($0) })
        #expect((1...60).contains(wait))
        #expect(origin.count("/c.gif") == 0)
        for _ in 0..<5 { #expect(try server.mp4(origin.url("/a.gif"), headers: client)["cache-status"] == "gifreel; hit") }
        try expect(
            try server.request("POST", "/mp4", headers: client, body: GIFBuilder.animation(frames: 9)), 429, "rate_limited")
        #expect(try server.mp4(origin.url("/c.gif"), headers: ["X-Forwarded-For: 192.0.2.2"]).status == 200)
    }

    @Test func aRequestOfItsOwnIsRefused() throws {
        let server = try GifreelProcess()
        let own = "http://127.0.0.1:\(server.port)"
        // Loopback is allowed here, yet not the service's own port, by whatever address it is reached.
        for host in ["127.0.0.1", "localhost", "127.1"] {
            try expect(try server.mp4("http://\(host):\(server.port)/mp4/http://a.test/"), 403, "source_not_allowed")
        }
        let origin = try LoopbackOrigin(["/turn.gif": { _ in .redirect(to: "\(own)/mp4/http://a.test/") }])
        defer { origin.stop() }
        try expect(try server.mp4(origin.url("/turn.gif")), 403, "source_not_allowed")
        // Behind a proxy the address differs, and `CDN-Loop` shows the loop.
        for field in ["CDN-Loop: gifreel", "CDN-Loop: a.example;v=1, Gifreel"] {
            try expect(try server.mp4(origin.url("/b.gif"), headers: [field]), 403, "source_not_allowed")
        }
        #expect(try server.mp4(origin.url("/b.gif"), headers: ["CDN-Loop: another"]).status == 404)
        #expect(origin.requests.allSatisfy { $0.headers["cdn-loop"] == "gifreel" })
    }

    /// Each leads an origin that strips parameters, or decodes twice, out of the folder.
    @Test func noHiddenDotSegmentLeadsOutOfAProtectedPrefix() throws {
        let gif = gif
        let segments = ["..;x", "..%3Bx", "%252e%252e", "%25252e%25252e", "..%2fy%2f..", "%c0%ae%c0%ae"]
        let origin = try LoopbackOrigin()
        defer { origin.stop() }
        for segment in segments {
            for folder in ["up", "priv"] { origin.on("/\(folder)/\(segment)/a.gif", .ok(gif)) }
        }
        let server = try GifreelProcess([
            "signing.keys=\(Self.key)", "sources.require_signature=false", "sources.allow=127.0.0.1/up/",
            "mounts.signed.origin=\(origin.url("/signed/"))", "mounts.signed.require_signature=true",
            "mounts.members.origin=\(origin.url("/priv/"))", "mounts.members.headers=X-Key: 1",
            "mounts.open.origin=\(origin.url("/up/"))",
        ])
        for segment in segments {
            let paths = ["/mp4/\(origin.url("/up/"))\(segment)/a.gif", "/open/\(segment)/a.mp4", "/members/\(segment)/a.mp4"]
            for (path, statuses) in zip(paths, [[403], [404], [404]]) {
                let answer = try server.request("GET", path)
                #expect(statuses.contains(answer.status), "\(path) \(answer.status)")
            }
        }
        #expect(origin.requests.isEmpty)
    }
}
