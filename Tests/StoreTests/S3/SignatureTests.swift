import HTTPClient
import Digests
import TestSupport
import Testing

@testable import Store

@Suite("Requests are signed as AWS Signature Version 4 defines it") struct SignatureTests {
    private static let region = "eu-central-1"
    private static let limit = Duration.seconds(20)

    /// Sends requests to an origin that records them, and returns these.
    private func requests(
        token: String? = nil, usesPathStyle: Bool = true, host: String = "127.0.0.1", paths: [String],
        _ body: (S3Client) async throws -> Void
    ) async throws -> [LoopbackRequest] {
        let origin = try LoopbackOrigin()
        defer { origin.stop() }
        for path in paths { origin.on(path, .ok([])) }
        let credentials = try S3Credentials(accessKey: "AKIDEXAMPLE", secretKey: "wJalr:XUtn/FE+MI=", sessionToken: token)
        let endpoint = try S3Endpoint(url: "http://\(host):\(origin.port)", region: Self.region, usesPathStyle: usesPathStyle)
        let http = try HTTPClient(name: "test", limits: .init(running: 1))
        defer { http.stop() }
        let bucket = try S3Bucket(endpoint: endpoint, name: "b", keys: .fixed(credentials))
        try await body(S3Client(http, bucket: bucket))
        return origin.requests
    }

    private func signed(_ url: String) -> ClientRequest {
        var request = ClientRequest("GET", url, timeout: Self.limit)
        request.signer = SignatureV4(region: Self.region, accessKey: "A", secretKey: "S")
        return request
    }

    private func expectValid(_ requests: [LoopbackRequest], count: Int) {
        #expect(requests.count == count)
        for request in requests {
            #expect(
                SignatureCheck.isValid(request, secretKey: "wJalr:XUtn/FE+MI=", region: Self.region),
                "\(request.method) \(request.target) \(request.headers)")
        }
    }

    @Test func everyOperationIsSigned() async throws {
        let requests = try await requests(paths: ["/b/a%20b%2B/%C3%A9", "/b"]) { client in
            let key = "a b+/é"
            _ = try await client.get(key, to: .memory(limit: 9), timeout: Self.limit)
            _ = try await client.head(key, timeout: Self.limit)
            try await client.delete(key, timeout: Self.limit)
            try await client.put(
                key,
                S3Client.Upload(
                    body: .bytes([1]), digest: SHA256.hash([1]), mediaType: "video/mp4",
                    metadata: ["gifreel-b": "2", "gifreel-a": "x  y", "gifreel-c": ""]), timeout: Self.limit)
            // The answer is no list.
            _ = await storeError { _ = try await client.list(prefix: "a b+/é&=", token: "t/+= &", timeout: Self.limit) }
        }
        expectValid(requests, count: 5)
        #expect(requests.map(\.method) == ["GET", "HEAD", "DELETE", "PUT", "GET"])
        #expect(
            requests.last?.query
                == "list-type=2&max-keys=1000&prefix=a%20b%2B%2F%C3%A9%26%3D&continuation-token=t%2F%2B%3D%20%26")
    }

    /// The examples of Amazon's documentation, «Authenticating Requests: Using the Authorization Header».
    @Test(arguments: [
        ("?lifecycle", "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
        ("?prefix=J&max-keys=2", "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
    ])
    func theExamplesOfTheDefinitionHaveTheirSignatures(_ query: String, _ expected: String) {
        let signer = SignatureV4(
            region: "us-east-1", accessKey: "AKIAIOSFODNN7EXAMPLE", secretKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
        let fields = signer.sign(
            "GET", "https://examplebucket.s3.amazonaws.com:443/\(query)", fields: ["Accept: a"], unixSeconds: 1_369_353_600)
        #expect(
            fields.last
                == "Authorization: AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
                + "SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature=\(expected)")
    }

    /// Parameters are sorted by name, and a text with an equals sign sorts differently.
    @Test func aNameThatBeginsAsAnotherIsSortedBehindIt() async throws {
        let origin = try LoopbackOrigin(["/b": { _ in .ok([]) }])
        defer { origin.stop() }
        let http = try HTTPClient(name: "test", limits: .init(running: 1))
        defer { http.stop() }
        _ = try await http.send(signed(origin.url("/b?a-b=2&a=3&a=1")))
        let request = try #require(origin.requests.first)
        #expect(request.query == "a-b=2&a=3&a=1")
        #expect(
            SignatureCheck.isValid(request, secretKey: "S", region: Self.region, query: "a=1&a=3&a-b=2"))
    }

    @Test(arguments: ["/b/a/../c", "/b/./c", "/b/a%2Fc", "/b//c//", "/b/%2e%2E/c", "/b/a+%20~"])
    func aPathIsSignedAndSentAsItIs(_ path: String) async throws {
        let origin = try LoopbackOrigin([path: { _ in .ok([7]) }])
        defer { origin.stop() }
        let http = try HTTPClient(name: "test", limits: .init(running: 1))
        defer { http.stop() }
        let response = try await http.send(signed(origin.url(path)))
        #expect(response.body == [7])
        let request = try #require(origin.requests.first)
        #expect(request.target == path)
        #expect(SignatureCheck.isValid(request, secretKey: "S", region: Self.region))
    }

    @Test func metadataOfAnObjectIsSigned() async throws {
        let rendition = try TestRendition(1)
        let requests = try await requests(paths: ["/b/k"]) { client in
            try await client.put(
                "k",
                S3Client.Upload(
                    body: .bytes(Array(rendition.bytes.prefix(100))),
                    digest: SHA256.hash(rendition.bytes.prefix(100)),
                    mediaType: "video/mp4", metadata: rendition.record.fields), timeout: Self.limit)
        }
        expectValid(requests, count: 1)
        #expect(requests.first?.headers["x-amz-meta-gifreel-sha256"] == rendition.record.fields["gifreel-sha256"])
    }

    @Test func theTokenOfTemporaryCredentialsIsSentAndSigned() async throws {
        let token = String(repeating: "IQoJb3JpZ2luX2VjEOv/", count: 60) + "=="
        let requests = try await requests(token: token, paths: ["/b/k"]) { client in
            _ = try await client.get("k", to: .memory(limit: 9), timeout: Self.limit)
        }
        expectValid(requests, count: 1)
        #expect(requests.first?.headers["x-amz-security-token"] == token)
    }

    /// libcurl resolves names below `localhost` to loopback addresses.
    @Test func theBucketIsPartOfTheSignedHost() async throws {
        let requests = try await requests(usesPathStyle: false, host: "localhost", paths: ["/k", "/"]) { client in
            _ = try await client.get("k", to: .memory(limit: 9), timeout: Self.limit)
            _ = await storeError { _ = try await client.list(prefix: "", token: nil, timeout: Self.limit) }
        }
        expectValid(requests, count: 2)
        #expect(requests.first?.headers["host"]?.hasPrefix("b.localhost:") == true)
    }

    /// The test of the test: a changed request has another signature.
    @Test func theCheckRefusesAWrongSecret() async throws {
        let requests = try await requests(paths: ["/b/k"]) { _ = try await $0.head("k", timeout: Self.limit) }
        let request = try #require(requests.first)
        #expect(!SignatureCheck.isValid(request, secretKey: "other", region: Self.region))
        #expect(!SignatureCheck.isValid(request, secretKey: "wJalr:XUtn/FE+MI=", region: "us-east-1"))
    }

    @Test func aBucketWithoutCredentialsIsReadUnsigned() async throws {
        let origin = try LoopbackOrigin(["/b/k": { _ in .ok([1]) }])
        defer { origin.stop() }
        let endpoint = try S3Endpoint(url: "http://127.0.0.1:\(origin.port)", region: Self.region, usesPathStyle: true)
        let http = try HTTPClient(name: "test", limits: .init(running: 1))
        defer { http.stop() }
        let client = S3Client(http, bucket: try S3Bucket(endpoint: endpoint, name: "b", keys: .none))
        #expect(try await client.get("k", to: .memory(limit: 9), timeout: Self.limit)?.body == [1])
        #expect(origin.requests.first?.headers["authorization"] == nil)
    }
}
