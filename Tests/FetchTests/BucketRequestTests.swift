import Fetch
import HTTPClient
import TestSupport
import Testing

@Suite("Objects of a bucket are requested by signed requests") struct BucketRequestTests {
    /// The fields of a conditional request for an object, as the origin receives them.
    private func fields(_ signer: SignatureV4?) async throws -> [String: String] {
        let origin = try LoopbackOrigin()
        defer { origin.stop() }
        origin.on("/b/a%2Bb.gif", .ok(TestGIF.dot))
        var configuration = FetchConfiguration()
        configuration.allowPrivate = [try #require(AddressException("127.0.0.1"))]
        configuration.ports = .all
        let root = origin.url("/b/")
        configuration.buckets = ["b": BucketAccess(root: root, signer: signer.map { .fixed($0) })]
        let mount = MountRule(try SourceURL(bucketFolder: "s3://b/", of: "b", at: root))
        configuration.mounts = [mount]
        let fetcher = try Fetcher(configuration: configuration)
        defer { fetcher.shutdown() }
        let url = try mount.source("s3://b/a+b.gif")
        let outcome = try await fetcher.fetch(
            url, validators: SourceValidators(etag: "\"1\"", lastModified: "Sun, 06 Nov 1994 08:49:37 GMT"))
        guard case .fetched = outcome else {
            Issue.record("\(outcome)")
            return [:]
        }
        return try #require(origin.requests.first).headers
    }

    @Test func onlyTheFieldsThatNoProxyRewritesAreSigned() async throws {
        let fields = try await fields(SignatureV4(region: "r", accessKey: "AK", secretKey: "SK", sessionToken: "T"))
        let authorization = try #require(fields["authorization"])
        #expect(authorization.contains("SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token, "))
        #expect(fields["if-none-match"] == "\"1\"" && fields["if-modified-since"] != nil)
        #expect(fields["accept-encoding"] == "identity")
    }

    @Test func anOpenBucketIsReadWithoutASignature() async throws {
        let fields = try await fields(nil)
        #expect(fields["authorization"] == nil && fields["x-amz-date"] == nil)
        #expect(fields["if-none-match"] == "\"1\"")
    }
}
