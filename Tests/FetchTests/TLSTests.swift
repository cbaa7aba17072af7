import Fetch
import TestSupport
import Testing

@Suite("TLS certificates are verified", .enabled(if: TLSOrigin.isAvailable)) struct TLSTests {
    private func failure(_ url: String, trusting authorities: String?) async throws -> FetchError? {
        var configuration = FetchConfiguration()
        configuration.allowPrivate = [try #require(AddressException("127.0.0.1"))]
        configuration.ports = .all
        configuration.certificateAuthorities = authorities
        let fetcher = try Fetcher(configuration: configuration)
        defer { fetcher.shutdown() }
        return try await fetcher.failure(url)
    }

    @Test func certificateMustBeTrustedAndNameTheHost() async throws {
        let origin = try TLSOrigin(serving: TestGIF.dot)
        defer { origin.stop() }
        let url = "https://127.0.0.1:\(origin.port)/a.gif"
        #expect(try await failure(url, trusting: origin.certificate) == nil)
        guard case .failed(.tls) = try await failure(url, trusting: nil) else {
            Issue.record("an untrusted certificate was accepted")
            return
        }
        guard case .failed(.tls) = try await failure("https://localhost:\(origin.port)/a.gif", trusting: origin.certificate)
        else {
            Issue.record("a certificate for another host was accepted")
            return
        }
        guard case .exhausted = try await failure(url, trusting: "/nowhere/authorities.pem") else {
            Issue.record("authorities that cannot be read are not the origin's fault")
            return
        }
    }
}
