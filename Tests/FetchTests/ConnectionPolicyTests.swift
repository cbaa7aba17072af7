import Fetch
import Glibc
import TestSupport
import Testing

@Suite("Connections are checked when they are made") struct ConnectionPolicyTests {
    @Test func loopbackIsRefusedByDefault() async throws {
        let origin = try LoopbackOrigin()
        defer { origin.stop() }
        var configuration = FetchConfiguration()
        configuration.ports = [origin.port]
        let fetcher = try Fetcher(configuration: configuration)
        defer { fetcher.shutdown() }
        let refusal = FetchError.notAllowed(.address(.address(purpose: "loopback")))
        await #expect(throws: refusal) { try await fetcher.source(origin.url("/a.gif")) }
        // A name is looked up first; the address it has is refused when it is about to be connected to.
        await #expect(throws: refusal) { try await fetcher.source(origin.url("/a.gif", host: "localhost")) }
        #expect(fetcher.counters().refusedAddresses > 0)
        #expect(origin.connections == 0)
    }

    @Test func exceptionAllowsOnlyItsAddress() async throws {
        try await withOrigin { origin, fetcher in
            origin.on("/a.gif", .ok(TestGIF.dot))
            let source = try await fetcher.source(origin.url("/a.gif", host: "localhost"))
            #expect(source.count == TestGIF.dot.count)
            let other = "http://127.0.0.2:\(origin.port)/a.gif"
            await #expect(throws: FetchError.notAllowed(.address(.address(purpose: "loopback")))) {
                try await fetcher.source(other)
            }
        }
    }

    @Test func exceptionDoesNotAllowOtherPorts() async throws {
        try await withOrigin({ $0.ports = [80] }) { origin, fetcher in
            let refusal = FetchError.notAllowed(.address(.port(origin.port, allowed: [80])))
            await #expect(throws: refusal) { try await fetcher.source(origin.url("/a.gif")) }
            await #expect(throws: refusal) { try await fetcher.source(origin.url("/a.gif", host: "localhost")) }
            #expect(origin.connections == 0)
        }
    }

    @Test func sourceOutsideThePatternsIsNotRequested() async throws {
        try await withOrigin({ $0.allow = ["example.com"].compactMap { SourcePattern($0) } }) { origin, fetcher in
            await #expect(throws: FetchError.notAllowed(.pattern)) { try await fetcher.source(origin.url("/a.gif")) }
            #expect(origin.connections == 0)
        }
    }

    @Test func closedPortIsUnreachable() async throws {
        let origin = try LoopbackOrigin()
        origin.stop()
        try await withOrigin { _, fetcher in
            guard case .unreachable = try await fetcher.failure(origin.url("/a.gif")) else {
                Issue.record("reached")
                return
            }
        }
    }

    /// In a process of its own, since the environment belongs to all tests.
    @Test func proxiesInTheEnvironmentAreNotUsed() async throws {
        await #expect(processExitsWith: .success) {
            for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
                setenv(name, "http://127.0.0.1:9", 1)
            }
            try await withOrigin { origin, fetcher in
                origin.on("/a.gif", .ok(TestGIF.dot))
                let source = try await fetcher.source(origin.url("/a.gif"))
                try #require(source.count == TestGIF.dot.count)
            }
        }
    }

    @Test func refusalOfAPrivateAddressNamesTheSettingThatAllowsIt() {
        let error = FetchError.notAllowed(.address(.address(purpose: "loopback")))
        #expect(error.publicDetail == "The address of the source is private; the setting sources.allow_private allows it.")
        #expect(error.description.contains("loopback"))
    }

    @Test func sentencesForClientsContainNoCause() {
        let secret = "10.1.2.3"
        let errors: [FetchError] = [
            .unreachable(cause: secret), .failed(.tls(cause: secret)), .failed(.protocolViolation(cause: secret)),
            .failed(.cutShort(cause: secret)), .exhausted(cause: secret), .notAllowed(.address(.address(purpose: secret))),
        ]
        for error in errors {
            #expect(!error.publicDetail.contains(secret))
            #expect(error.description.contains(secret))
        }
    }
}
