import Fetch
import HTTPClient
import TestSupport
import Testing

@Suite("Objects of a bucket are requested by signed requests") struct BucketRequestTests {
    /// The fields of a conditional request for an object, as the origin receives them.
    private func fields(_ signer: SignatureV4?) async throws -> [String: String] {
        let origin = try LoopbackOrigin(["/b/a%2Bb.gif": { _ in .ok(TestGIF.dot) }])
        defer { origin.stop() }
        guard case .fetched(let source) = try await fetch(from: origin, signer) else {
            Issue.record("no source")
            return [:]
        }
        #expect(source.count == TestGIF.dot.count)
        return try #require(origin.requests.first).headers
    }

    /// Fetches an object on certain conditions.
    private func fetch(from origin: LoopbackOrigin, _ signer: SignatureV4? = nil) async throws -> FetchOutcome {
        var configuration = FetchConfiguration()
        configuration.allowPrivate = [try #require(AddressException("127.0.0.1"))]
        configuration.ports = .all
        (configuration.timeout, configuration.stallTimeout) = (.seconds(60), .seconds(60))
        let root = origin.url("/b/")
        configuration.buckets = ["b": BucketAccess(root: root, signer: signer.map { .fixed($0) })]
        let mount = MountRule(try SourceURL(bucketFolder: "s3://b/", of: "b", at: root))
        configuration.mounts = [mount]
        let fetcher = try Fetcher(configuration: configuration)
        defer { fetcher.shutdown() }
        let url = try mount.source("s3://b/a+b.gif")
        return try await fetcher.fetch(
            url, validators: SourceValidators(etag: "\"1\"", lastModified: "Sun, 06 Nov 1994 08:49:37 GMT"))
    }

    @Test func onlyTheFieldsThatNoProxyRewritesAreSigned() async throws {
        let fields = try await fields(SignatureV4(region: "r", accessKey: "AK", secretKey: "SK", sessionToken: "T"))
        let authorization = try #require(fields["authorization"])
        #expect(authorization.contains("SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token, "))
        #expect(fields["if-none-match"] == "\"1\"" && fields["if-modified-since"] != nil)
        #expect(fields["accept-encoding"] == "identity")
    }

    /// A missing bucket is an error of the origin, like a missing directory.
    @Test(arguments: [
        (404, "NoSuchKey"), (404, "NoSuchBucket"), (403, "RequestTimeTooSkewed"), (301, "PermanentRedirect"),
        (400, "ExpiredToken"),
    ])
    func theLogHasTheCodeOfTheServicesError(_ status: Int, _ code: String) async throws {
        let body = Array("<?xml version=\"1.0\"?>\n<Error><Code>\(code)</Code></Error>".utf8)
        let chunk = Array("\(String(body.count, radix: 16))\r\n".utf8) + body + Array("\r\n0\r\n\r\n".utf8)
        let answers = [
            LoopbackAnswer.response("\(status) Status", body: body),
            .response("\(status) Status", body: body, declaresLength: false),
            .raw("HTTP/1.1 \(status) Status\r\nTransfer-Encoding: chunked\r\n\r\n", chunk),
            .raw("HTTP/1.1 \(status) Status\r\n\r\n", then: [.trickle(body, every: .milliseconds(1))]),
        ]
        let failure = FetchError.failed(.status(status, retryAfter: nil, code: code))
        let expected = code == "NoSuchKey" ? FetchError.notFound : failure
        for answer in answers {
            let origin = try LoopbackOrigin(["/b/a%2Bb.gif": { _ in answer }])
            defer { origin.stop() }
            await #expect(throws: expected) { try await fetch(from: origin) }
        }
        #expect("\(failure)" == "status \(status): \(code)" && !failure.publicDetail.contains(code))
    }

    @Test func anErrorDoesNotWaitForABodyThatNeverComes() async throws {
        let origin = try LoopbackOrigin(["/b/a%2Bb.gif": { _ in .raw("HTTP/1.1 403 Status\r\n\r\n", then: [.hang]) }])
        defer { origin.stop() }
        let start = ContinuousClock.now
        await #expect(throws: FetchError.failed(.status(403, retryAfter: nil))) { try await fetch(from: origin) }
        #expect(ContinuousClock.now - start < .seconds(30))
    }

    @Test func anOpenBucketIsReadWithoutASignature() async throws {
        let fields = try await fields(nil)
        #expect(fields["authorization"] == nil && fields["x-amz-date"] == nil)
        #expect(fields["if-none-match"] == "\"1\"")
    }
}
