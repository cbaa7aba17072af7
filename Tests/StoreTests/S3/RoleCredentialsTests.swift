import Foundation
import HTTPClient
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Store

@Suite("Keys are those that the machine gives to its programs, and are renewed") struct RoleCredentialsTests {
    private static let limit = Duration.seconds(20)
    /// 2026-11-26T08:00:00Z.
    private static let start: Int64 = 1_795_680_000

    /// A clock that a test sets.
    private final class Clock: Sendable {
        let now = Mutex(RoleCredentialsTests.start)

        func advance(_ seconds: Int64) { now.withLock { $0 += seconds } }
    }

    private func credentials(_ environment: [String: String], _ clock: Clock = Clock()) -> RoleCredentials {
        RoleCredentials(
            environment: ["AWS_EC2_METADATA_DISABLED": "true"].merging(environment) { $1 },
            time: TimeSource(unixSeconds: { clock.now.withLock { $0 } }))
    }

    /// The access key of the signature of a request that is sent now; nil for none.
    private func key(_ role: RoleCredentials, within limit: Duration = limit) async throws -> String? {
        let signature = try await role.signature(for: "r", within: limit)
        let fields = signature?.sign("GET", "http://127.0.0.1/", fields: []) ?? []
        return fields.first { $0.hasPrefix("Authorization") }?.split(separator: "=")[1].split(separator: "/").first.map(
            String.init)
    }

    private func failure(_ role: RoleCredentials) async -> String? {
        do throws(StoreError) {
            _ = try await role.signature(for: "r", within: Self.limit)
            return nil
        } catch {
            return error.label == "no_keys" ? error.description : "\(error)"
        }
    }

    private static func document(_ key: String, expires: String? = nil) -> LoopbackAnswer {
        let expiration = expires.map { #","Expiration":"\#($0)""# } ?? ""
        let text = #"{"Code":"Success","AccessKeyId":"\#(key)","SecretAccessKey":"S","Token":"T"\#(expiration)}"#
        return .ok(Array(text.utf8))
    }

    private static func file(_ text: String) throws -> URL {
        let url = FileManager.default.temporaryDirectory.appendingPathComponent("gifreel-\(UUID().uuidString)")
        try Data(text.utf8).write(to: url)
        return url
    }

    // MARK: EC2

    /// A metadata service that answers version 2 only.
    private func instance(_ roles: LoopbackAnswer, _ keys: LoopbackAnswer) throws -> LoopbackOrigin {
        let origin = try LoopbackOrigin()
        origin.on("/latest/api/token") { request in
            guard request.method == "PUT", request.headers["x-aws-ec2-metadata-token-ttl-seconds"] == "21600" else {
                return .status(405)
            }
            return .ok(Array("TOKEN==".utf8))
        }
        func withToken(_ answer: LoopbackAnswer) -> LoopbackOrigin.Handler {
            { $0.headers["x-aws-ec2-metadata-token"] == "TOKEN==" ? answer : .status(401) }
        }
        origin.on("/latest/meta-data/iam/security-credentials/", withToken(roles))
        origin.on("/latest/meta-data/iam/security-credentials/my-role", withToken(keys))
        return origin
    }

    @Test func theRoleOfAnInstanceIsReadWithAToken() async throws {
        let origin = try instance(
            .ok(Array("my-role\n".utf8)), Self.document("EC2KEY", expires: "2026-11-26T14:00:00Z"))
        defer { origin.stop() }
        let role = credentials([
            "AWS_EC2_METADATA_SERVICE_ENDPOINT": origin.url("/"), "AWS_EC2_METADATA_DISABLED": "",
        ])
        #expect(role.signature(for: "r") == nil)
        #expect(try await key(role) == "EC2KEY")
        #expect(role.source == "the metadata service of EC2")
        #expect(try await key(role) == "EC2KEY")
        #expect(origin.requests.map(\.method) == ["PUT", "GET", "GET"])
        let fields = try #require(role.signature(for: "r")).sign("GET", "http://127.0.0.1/")
        #expect(fields.contains("x-amz-security-token: T"))
    }

    @Test func anInstanceWithoutARoleOrWithoutVersion2SignsNothing() async throws {
        let origin = try instance(.status(404), .status(404))
        defer { origin.stop() }
        let environment = ["AWS_EC2_METADATA_SERVICE_ENDPOINT": origin.url(""), "AWS_EC2_METADATA_DISABLED": ""]
        #expect(try await key(credentials(environment)) == nil)
        origin.on("/latest/api/token", .status(403))
        #expect(try await key(credentials(environment)) == nil)
        // Nothing listens there.
        let (closed, clock) = (try LoopbackOrigin(), Clock())
        closed.stop()
        let role = credentials(
            ["AWS_EC2_METADATA_SERVICE_ENDPOINT": closed.url(""), "AWS_EC2_METADATA_DISABLED": ""], clock)
        #expect(try await key(role) == nil)
    }

    @Test func anInstanceWhoseMetadataFailIsNoReasonToSendUnsignedRequests() async throws {
        let origin = try instance(.ok(Array("my-role".utf8)), .ok(Array("{}".utf8)))
        defer { origin.stop() }
        let role = credentials([
            "AWS_EC2_METADATA_SERVICE_ENDPOINT": origin.url(""), "AWS_EC2_METADATA_DISABLED": "",
        ])
        let text = await failure(role)
        #expect(text?.contains("the metadata service of EC2 has one key without the other, or none") == true, "\(text ?? "")")
    }

    // MARK: Containers

    @Test func theServiceOfAContainerGetsItsToken() async throws {
        let origin = try LoopbackOrigin()
        defer { origin.stop() }
        origin.on("/v1/keys") { $0.headers["authorization"] == "Bearer x" ? Self.document("ECSKEY") : .status(401) }
        let token = try Self.file("Bearer x\n")
        defer { try? FileManager.default.removeItem(at: token) }
        let uri = "AWS_CONTAINER_CREDENTIALS_FULL_URI"
        let withFile = [uri: origin.url("/v1/keys"), "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": token.path]
        #expect(try await key(credentials(withFile)) == "ECSKEY")
        let direct = [uri: origin.url("/v1/keys"), "AWS_CONTAINER_AUTHORIZATION_TOKEN": "Bearer x"]
        #expect(try await key(credentials(direct)) == "ECSKEY")
        let none = await failure(credentials([uri: origin.url("/v1/keys")]))
        #expect(none?.contains("answers 401") == true)
    }

    @Test(arguments: [
        "http://192.0.2.1/keys", "http://127.0.0.1.example.com/", "http://localhost@example.com/", "ftp://127.0.0.1/",
    ])
    func aTokenIsSentToNoOtherMachineInPlainText(_ url: String) async throws {
        let text = await failure(credentials(["AWS_CONTAINER_CREDENTIALS_FULL_URI": url]))
        #expect(text?.contains("must be https") == true, "\(text ?? "")")
    }

    // MARK: Web identity

    @Test func aWebIdentityIsExchangedForKeysAgainWithTheTokenOfThen() async throws {
        let origin = try LoopbackOrigin()
        defer { origin.stop() }
        origin.on("/") { request in
            let body = String(decoding: request.body, as: UTF8.self)
            guard request.method == "POST", body.hasPrefix("Action=AssumeRoleWithWebIdentity&Version=2011-06-15&"),
                body.contains("RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fr&RoleSessionName=gifreel&")
            else { return .status(400) }
            let name = body.contains("WebIdentityToken=one%2B") ? "ONE" : body.contains("WebIdentityToken=two") ? "TWO" : "?"
            let time = name == "ONE" ? "2026-11-26T09:00:00Z" : "2026-11-26T10:00:00Z"
            return .ok(
                Array(
                    """
                    <AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult>
                    <Credentials><AccessKeyId>\(name)</AccessKeyId><SecretAccessKey>S</SecretAccessKey><SessionToken>T</SessionToken>
                    <Expiration>\(time)</Expiration></Credentials></AssumeRoleWithWebIdentityResult>
                    </AssumeRoleWithWebIdentityResponse>
                    """.utf8))
        }
        let token = try Self.file("one+\n")
        defer { try? FileManager.default.removeItem(at: token) }
        let clock = Clock()
        let role = credentials(
            [
                "AWS_WEB_IDENTITY_TOKEN_FILE": token.path, "AWS_ROLE_ARN": "arn:aws:iam::1:role/r",
                "AWS_ENDPOINT_URL_STS": origin.url(""),
            ], clock)
        #expect(try await key(role) == "ONE")
        clock.advance(3299)
        #expect(try await key(role) == "ONE" && origin.requests.count == 1)
        try Data("two".utf8).write(to: token)
        clock.advance(2)
        // The former keys are valid for five minutes, so no caller waits.
        #expect(try await key(role) == "ONE")
        try await waitUntil("the renewal") { try await key(role) == "TWO" }
        #expect(origin.requests.count == 2)
    }

    @Test func keysAreRenewedAfterTheWallClockWasSetBack() async throws {
        let origin = try LoopbackOrigin()
        defer { origin.stop() }
        origin.on("/keys", Self.document("ONE", expires: "2036-11-26T14:00:00Z"))
        let clock = Clock()
        let tenYears: Int64 = 3653 * 86_400
        clock.advance(tenYears)
        let role = credentials(["AWS_CONTAINER_CREDENTIALS_FULL_URI": origin.url("/keys")], clock)
        #expect(try await key(role) == "ONE")
        origin.on("/keys", Self.document("TWO", expires: "2026-11-26T14:00:00Z"))
        clock.advance(-tenYears)
        try await waitUntil("the renewal") { try await key(role) == "TWO" }
        origin.on("/keys", .status(500))
        clock.advance(tenYears)
        try await waitUntil("the failed renewal") {
            _ = try await key(role); return origin.requests.count > 2
        }
        origin.on("/keys", Self.document("THREE", expires: "2026-11-26T14:00:00Z"))
        clock.advance(-tenYears)
        try await waitUntil("the keys") { try await key(role) == "THREE" }
    }

    @Test func aRefusalNamesItsCodeAndARoleIsNeeded() async throws {
        let origin = try LoopbackOrigin()
        defer { origin.stop() }
        origin.on(
            "/",
            .response(
                "403 Forbidden",
                body: Array("<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code></Error></ErrorResponse>".utf8)))
        let token = try Self.file("t")
        defer { try? FileManager.default.removeItem(at: token) }
        var environment = ["AWS_WEB_IDENTITY_TOKEN_FILE": token.path, "AWS_ENDPOINT_URL_STS": origin.url("")]
        let half = await failure(credentials(environment))
        #expect(half?.contains("AWS_ROLE_ARN is not") == true)
        environment["AWS_ROLE_ARN"] = "r"
        let refused = await failure(credentials(environment))
        #expect(refused?.contains("the security token service answers 403 AccessDenied") == true, "\(refused ?? "")")
    }

    // MARK: The credentials file

    @Test func aProfileOfTheCredentialsFileIsRead() async throws {
        let file = try Self.file(
            """
            # keys
            [default]
            aws_access_key_id = DEFAULT
            AWS_SECRET_ACCESS_KEY=s

            [ other ]
            aws_access_key_id=OTHER
            aws_secret_access_key=a=b
            aws_session_token=
            [half]
            aws_access_key_id=HALF
            [role]
            role_arn=x
            [default]
            region = eu-west-1
            """)
        defer { try? FileManager.default.removeItem(at: file) }
        func role(_ profile: String?) -> RoleCredentials {
            credentials(["AWS_SHARED_CREDENTIALS_FILE": file.path, "AWS_PROFILE": profile ?? ""])
        }
        #expect(try await key(role(nil)) == "DEFAULT")
        #expect(try await key(role("other")) == "OTHER")
        #expect(try await key(role("role")) == nil)
        let (half, none) = (await failure(role("half")), await failure(role("none")))
        #expect(half?.contains("one key without the other") == true)
        #expect(none?.contains("no profile of the name in AWS_PROFILE") == true)
        let missing = await failure(credentials(["AWS_SHARED_CREDENTIALS_FILE": "/nonexistent/file"]))
        #expect(missing?.contains("cannot be read") == true)
        // Without variables, the file need not exist.
        #expect(try await key(credentials(["HOME": "/nonexistent"])) == nil)
    }

    // MARK: Renewal

    @Test func keysThatCannotBeRenewedAreUsedOnAndASourceIsAskedAgain() async throws {
        let origin = try LoopbackOrigin()
        defer { origin.stop() }
        origin.on("/k", Self.document("FIRST", expires: "2026-11-26T08:10:00Z"))
        let clock = Clock()
        let role = credentials(["AWS_CONTAINER_CREDENTIALS_FULL_URI": origin.url("/k")], clock)
        #expect(try await key(role) == "FIRST")
        origin.on("/k", .status(404))
        clock.advance(700)
        // The keys have expired by the clock of this machine, which may be wrong.
        #expect(try await key(role) == "FIRST" && origin.count("/k") == 2)
        #expect(try await key(role) == "FIRST" && origin.count("/k") == 2)
        origin.on("/k", Self.document("SECOND", expires: "2026-11-26T09:10:00Z"))
        clock.advance(11)
        #expect(try await key(role) == "SECOND")
    }

    @Test func callersWaitForTheSameLookAndNotLongerThanTheyMay() async throws {
        let gate = try LoopbackGate()
        let origin = try LoopbackOrigin()
        defer { origin.stop() }
        origin.on("/k", Self.document("KEY").after(gate))
        let role = credentials(["AWS_CONTAINER_CREDENTIALS_FULL_URI": origin.url("/k")])
        let error = await storeError { _ = try await role.signature(for: "r", within: .milliseconds(5)) }
        // Such an end is no outage of the store.
        #expect(error?.label == "exhausted" && error?.isOutage(of: .get) == false)
        async let keys = withThrowingTaskGroup(of: String?.self) { group in
            for _ in 0..<20 { group.addTask { try await self.key(role) } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        try await waitUntil("the request") { origin.count("/k") == 1 }
        gate.open()
        #expect(try await keys == [String?](repeating: "KEY", count: 20))
        #expect(origin.count("/k") == 1)
    }

    @Test func requestsOfTheStoreAreSignedWithTheLatestKeys() async throws {
        let origin = try LoopbackOrigin()
        defer { origin.stop() }
        origin.on("/k", Self.document("KEY"))
        origin.on("/b/o", .ok([1]))
        let role = credentials(["AWS_CONTAINER_CREDENTIALS_FULL_URI": origin.url("/k")])
        let endpoint = try S3Endpoint(url: "http://127.0.0.1:\(origin.port)", region: "r", usesPathStyle: true)
        let http = try HTTPClient(name: "test", limits: .init(running: 1))
        defer { http.stop() }
        let client = S3Client(http, bucket: try S3Bucket(endpoint: endpoint, name: "b", keys: .role(role)))
        #expect(try await client.get("o", to: .memory(limit: 9), timeout: Self.limit)?.body == [1])
        let request = try #require(origin.requests.last)
        #expect(SignatureCheck.isValid(request, secretKey: "S", region: "r"))
        #expect(request.headers["x-amz-security-token"] == "T")
    }
}

@Suite("Several objects are deleted by one request where the server permits") struct DeleteObjectsTests {
    private static let limit = Duration.seconds(20)

    private func client(_ origin: LoopbackOrigin, _ body: (S3Client) async throws -> Void) async throws {
        let endpoint = try S3Endpoint(url: "http://127.0.0.1:\(origin.port)", region: "r", usesPathStyle: true)
        let http = try HTTPClient(name: "test", limits: .init(running: 1))
        defer { http.stop() }
        try await body(S3Client(http, bucket: try S3Bucket(endpoint: endpoint, name: "b", keys: .none)))
    }

    @Test(arguments: ["501 Not Implemented", "405 Method Not Allowed", "400 Bad"])
    func aServerWithoutTheRequestIsNotAskedAgain(_ status: String) async throws {
        let origin = try LoopbackOrigin(["/b": { _ in .response(status) }])
        defer { origin.stop() }
        try await client(origin) { client in
            for _ in 0..<2 {
                let failures = try await client.delete(["a", "b"], timeout: Self.limit)
                #expect(failures == nil)
            }
        }
        #expect(origin.requests.map(\.target) == ["/b?delete="])
        #expect(origin.requests.first?.method == "POST")
    }

    @Test func objectsThatAreNotDeletedAreNamed() async throws {
        let text = """
            <DeleteResult><Error><Key>a</Key><Code>AccessDenied</Code></Error><Error><Key>b</Key><Code>SlowDown</Code></Error>\
            <Error><Key>c</Key><Code>InternalError</Code></Error></DeleteResult>
            """
        let origin = try LoopbackOrigin(["/b": { _ in .ok(Array(text.utf8)) }])
        defer { origin.stop() }
        try await client(origin) { client in
            let failures = try await client.delete(["a", "b", "c", "d"], timeout: Self.limit)
            #expect(
                failures == [
                    "a": .denied(code: "AccessDenied"), "b": .throttled(retryAfter: nil),
                    "c": .serverFailed(status: 200, code: "InternalError"),
                ])
        }
        origin.on("/b", .ok(Array("<html>".utf8)))
        try await client(origin) { client in
            let error = await storeError { _ = try await client.delete(["a", "b"], timeout: Self.limit) }
            #expect(error?.label == "invalid_response")
        }
    }
}
