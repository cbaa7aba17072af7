import TestSupport
import Testing

@testable import Fetch

@Suite("Redirects are followed within limits") struct RedirectTests {
    @Test(arguments: [301, 302, 303, 307, 308])
    func redirectIsFollowed(status: Int) async throws {
        try await withOrigin { origin, fetcher in
            origin.on("/a.gif", .redirect(to: "b.gif?c=d", status))
            origin.on("/b.gif", .ok(TestGIF.dot))
            let source = try await fetcher.source(origin.url("/a.gif"))
            #expect(source.count == TestGIF.dot.count)
            #expect(origin.requests.last?.target == "/b.gif?c=d")
            #expect(fetcher.counters().redirects == 1)
        }
    }

    @Test func redirectsBeyondTheLimitAreRefused() async throws {
        try await withOrigin({ $0.maxRedirects = 3 }) { origin, fetcher in
            origin.on("/chain") { request in
                let left = Int(request.query) ?? 0
                return left > 0 ? .redirect(to: "/chain?\(left - 1)") : .ok(TestGIF.dot)
            }
            _ = try await fetcher.source(origin.url("/chain?3"))
            #expect(fetcher.counters().redirects == 3)
            await #expect(throws: FetchError.tooManyRedirects(limit: 3)) { try await fetcher.source(origin.url("/chain?4")) }
            #expect(origin.count("/chain") == 4 + 4)
        }
    }

    /// Otherwise the redirect would stand in for the signature.
    @Test func noOtherSourceRedirectsToOneWhoseRequestsMustBeSigned() async throws {
        let origin = try LoopbackOrigin()
        defer { origin.stop() }
        origin.on("/open.gif", .redirect(to: "/signed/b.gif"))
        origin.on("/signed/a.gif", .redirect(to: "b.gif"))
        origin.on("/signed/b.gif", .ok(TestGIF.dot))
        var configuration = FetchConfiguration()
        configuration.allowPrivate = [try #require(AddressException("127.0.0.1"))]
        configuration.ports = .all
        var mount = MountRule(try SourceURL(origin.url("/signed/")))
        mount.requiresSignature = true
        configuration.mounts = [mount]
        let fetcher = try Fetcher(configuration: configuration)
        defer { fetcher.shutdown() }
        await #expect(throws: FetchError.notAllowed(.redirect(host: "127.0.0.1"))) {
            try await fetcher.source(origin.url("/open.gif"))
        }
        #expect(origin.count("/signed/b.gif") == 0)
        // The access control has checked the request for a source below the mount.
        #expect(try await fetcher.source(origin.url("/signed/a.gif")).count == TestGIF.dot.count)
    }

    @Test func everyHopIsCheckedAgainstTheAllowedSources() async throws {
        let other = try LoopbackOrigin()
        defer { other.stop() }
        let origin = try LoopbackOrigin()
        defer { origin.stop() }
        origin.on("/a.gif", .redirect(to: other.url("/a.gif")))
        var configuration = FetchConfiguration()
        configuration.allow = [try #require(SourcePattern("127.0.0.1:\(origin.port)"))]
        configuration.allowPrivate = [try #require(AddressException("127.0.0.1"))]
        configuration.ports = .all
        let fetcher = try Fetcher(configuration: configuration)
        defer { fetcher.shutdown() }
        let refusal = FetchError.notAllowed(.redirect(host: "127.0.0.1"))
        await #expect(throws: refusal) { try await fetcher.source(origin.url("/a.gif")) }
        #expect(other.connections == 0)
        // The detail is for clients.
        #expect("\(refusal)".contains("127.0.0.1") && !refusal.publicDetail.contains("127.0.0.1"))
    }

    @Test(arguments: [
        ("http://127.0.0.2:PORT/a.gif", FetchError.Refusal.address(.address(purpose: "loopback"))),
        ("http://[::1]:PORT/a.gif", .address(.address(purpose: "loopback"))),
        ("http://[::ffff:127.0.0.1]:PORT/a.gif", .address(.address(purpose: "IPv4-mapped"))),
        ("http://10.0.0.1/a.gif", .address(.address(purpose: "private use"))),
        ("//169.254.169.254/latest/meta-data/", .address(.address(purpose: "link-local"))),
    ])
    func everyHopIsCheckedAgainstTheAllowedAddresses(location: String, refusal: FetchError.Refusal) async throws {
        try await withOrigin(onlyItsPort: true) { origin, fetcher in
            origin.on("/a.gif", .redirect(to: location.replacing("PORT", with: "\(origin.port)")))
            await #expect(throws: FetchError.notAllowed(refusal)) { try await fetcher.source(origin.url("/a.gif")) }
            #expect(origin.connections == 1)
        }
    }

    @Test(arguments: ["http://93.184.215.14:22/a.gif", "http://127.0.0.1:22/a.gif"])
    func everyHopIsCheckedAgainstTheAllowedPorts(location: String) async throws {
        try await withOrigin(onlyItsPort: true) { origin, fetcher in
            origin.on("/a.gif", .redirect(to: location))
            let refusal = FetchError.Refusal.address(.port(22, allowed: [80, 443, origin.port]))
            await #expect(throws: FetchError.notAllowed(refusal)) { try await fetcher.source(origin.url("/a.gif")) }
        }
    }

    @Test(arguments: ["gopher://127.0.0.1:6379/", "file:///etc/passwd", "http://user@127.0.0.1/"])
    func redirectToAnotherSchemeIsAFaultOfTheOrigin(location: String) async throws {
        try await withOrigin { origin, fetcher in
            origin.on("/a.gif", .redirect(to: location))
            guard case .failed(.redirect) = try await fetcher.failure(origin.url("/a.gif")) else {
                Issue.record("followed")
                return
            }
        }
    }

    @Test(arguments: [[], ["Location: "]])
    func redirectWithoutALocationIsAFaultOfTheOrigin(fields: [String]) async throws {
        try await withOrigin { origin, fetcher in
            origin.on("/a.gif", .status(302, fields))
            await #expect(throws: FetchError.failed(.redirectToNowhere)) { try await fetcher.source(origin.url("/a.gif")) }
        }
    }

    @Test func redirectWithAnEndlessBodyIsFollowed() async throws {
        try await withOrigin { origin, fetcher in
            origin.on(
                "/a.gif", .raw("HTTP/1.1 302 Found\r\nLocation: /b.gif\r\n\r\n", then: [.sendForever(TestGIF.large(65536))]))
            origin.on("/b.gif", .ok(TestGIF.dot))
            _ = try await fetcher.source(origin.url("/a.gif"))
            #expect(fetcher.counters().redirects == 1)
        }
    }

    /// A body without a length ends with the connection, which the origin keeps open.
    @Test(arguments: ["", "Content-Length: 1000000\r\n", "Content-Length: 100\r\n", "Transfer-Encoding: chunked\r\n"])
    func aRedirectDoesNotWaitForTheEndOfItsBody(fields: String) async throws {
        try await withOrigin({ $0.timeout = .seconds(20) }) { origin, fetcher in
            origin.on("/a.gif", .raw("HTTP/1.1 302 Found\r\nLocation: /b.gif\r\n\(fields)\r\n", then: [.hang]))
            origin.on("/b.gif", .ok(TestGIF.dot))
            let source = try await fetcher.source(origin.url("/a.gif"))
            #expect(source.count == TestGIF.dot.count)
        }
    }

    @Test func timeLimitCoversAllHops() async throws {
        try await withOrigin({
            $0.timeout = .seconds(1)
            $0.maxRedirects = 50
        }) { origin, fetcher in
            origin.on("/a.gif") { _ in
                let answer = LoopbackAnswer.redirect(to: "/a.gif")
                return LoopbackAnswer(steps: [.pause(.milliseconds(300))] + answer.steps, keepsAlive: true)
            }
            await #expect(throws: FetchError.timeout(.total, limit: .seconds(1))) {
                try await fetcher.source(origin.url("/a.gif"))
            }
            #expect(origin.count("/a.gif") <= 4)
        }
    }
}

@Suite("Locations are resolved to URLs of sources") struct RedirectTargetTests {
    private let base = "http://example.com/a/b.gif?c=d"

    @Test(arguments: [
        ("/x.gif", "http://example.com/x.gif"),
        ("x.gif", "http://example.com/a/x.gif"),
        ("../x.gif", "http://example.com/x.gif"),
        ("//other.example/x.gif", "http://other.example/x.gif"),
        ("https://other.example/x.gif#y", "https://other.example/x.gif"),
        ("HTTP://OTHER.example:80/", "http://other.example/"),
        ("?e=f", "http://example.com/a/b.gif?e=f"),
        // RFC 3986 section 4.4: the URL itself.
        ("", "http://example.com/a/b.gif?c=d"),
        ("#x", "http://example.com/a/b.gif?c=d"),
        ("/with space/é.gif", "http://example.com/with%20space/%C3%A9.gif"),
        ("//127.1/", "http://127.0.0.1/"),
    ])
    func locationIsResolvedAgainstTheURL(location: String, target: String) throws {
        #expect(try WebAddress(base).following(location: Array(location.utf8)).canonical == target)
    }

    @Test(arguments: [
        "gopher://127.0.0.1:6379/", "file:///etc/passwd", "http://user@example.com/", "/\\other.example", "/a\rb",
        "http://[::1%25lo]/",
    ])
    func locationThatIsNoSourceIsRefused(location: String) throws {
        let url = try WebAddress(base)
        #expect(throws: SourceURLError.self) { try url.following(location: Array(location.utf8)) }
    }

    @Test func bytesThatAreNotUTF8AreEncoded() throws {
        let target = try WebAddress(base).following(location: [0x2f, 0xe9])
        #expect(target.canonical == "http://example.com/%E9")
    }
}
