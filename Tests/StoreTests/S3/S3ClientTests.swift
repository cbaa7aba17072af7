import Digests
import HTTPClient
import SystemIO
import TestSupport
import Testing

@testable import Store

@Suite("A real server accepts what the client sends", .s3Server) struct S3ClientTests {
    private static let limit = Duration.seconds(20)

    private func upload(_ bytes: [UInt8], metadata: [String: String] = [:]) -> S3Client.Upload {
        S3Client.Upload(
            body: .bytes(bytes), digest: SHA256.hash(bytes), mediaType: "video/mp4", metadata: metadata)
    }

    @Test func objectsAreStoredReadDescribedAndDeleted() async throws {
        let fixture = try StoreFixture()
        defer { fixture.stop() }
        try await fixture.withClient { client in
            let key = "\(fixture.prefix)/a"
            #expect(try await client.get(key, to: .memory(limit: 100), timeout: Self.limit) == nil)
            #expect(try await client.head(key, timeout: Self.limit) == nil)
            try await client.delete(key, timeout: Self.limit)

            try await client.put(key, upload([1, 2, 3], metadata: ["gifreel-a": "b c"]), timeout: Self.limit)
            let object = try await client.get(key, to: .memory(limit: 3), timeout: Self.limit)
            #expect(object?.body == [1, 2, 3])
            #expect(object?.metadata["gifreel-a"] == "b c")
            #expect(try await client.head(key, timeout: Self.limit) == object?.metadata)
            try await client.put(key, upload([4]), timeout: Self.limit)
            #expect(try await client.get(key, to: .memory(limit: 1), timeout: Self.limit)?.body == [4])

            try await client.delete(key, timeout: Self.limit)
            #expect(try await client.get(key, to: .memory(limit: 3), timeout: Self.limit) == nil)
        }
    }

    /// Each of these characters is encoded, sorted or trimmed by some client or server.
    @Test(arguments: [
        "plain", "with space", "a+b", "a%20b", "a&b=c", "semi;colon", "quote'\"", "(round)[square]{curly}", "hash#tag", "ask?",
        "é/ü/日本",
        "tilde~", "star*", "dollar$", "comma,", "at@", "colon:", "under_score-dash.dot", "back\\slash", "pipe|", "caret^",
        "tick`",
        "less<more>", "!",
    ])
    func keysMayHaveAnyCharacters(_ part: String) async throws {
        // rclone maps keys to names of files, which cannot have these.
        if S3Server.Kind.chosen == .rclone, part.contains("\\") { return }
        let fixture = try StoreFixture()
        defer { fixture.stop() }
        try await fixture.withClient { client in
            let key = "\(fixture.prefix)/\(part)/file"
            try await client.put(key, upload([9]), timeout: Self.limit)
            #expect(try await client.get(key, to: .memory(limit: 1), timeout: Self.limit)?.body == [9])
            let page = try await client.list(prefix: "\(fixture.prefix)/\(part)/", token: nil, timeout: Self.limit)
            #expect(page.entries.map(\.key) == [key])
            try await client.delete(key, timeout: Self.limit)
            #expect(try await client.head(key, timeout: Self.limit) == nil)
        }
    }

    @Test func severalObjectsAreDeletedByOneRequest() async throws {
        let fixture = try StoreFixture()
        defer { fixture.stop() }
        try await fixture.withClient { client in
            let keys = ["a", "b & c", "<d>"].map { "\(fixture.prefix)/\($0)" }
            for key in keys { try await client.put(key, upload([1]), timeout: Self.limit) }
            let failures = try await client.delete(keys + ["\(fixture.prefix)/none"], timeout: Self.limit)
            #expect(failures == [:])
            #expect(try await client.list(prefix: fixture.prefix, token: nil, timeout: Self.limit).entries.isEmpty)
        }
    }

    @Test func listsHavePagesInTheOrderOfKeys() async throws {
        let fixture = try StoreFixture()
        defer { fixture.stop() }
        try await fixture.withClient { client in
            let keys = (0..<7).map { "\(fixture.prefix)/k\($0)" }
            for key in keys.reversed() { try await client.put(key, upload([1, 2]), timeout: Self.limit) }
            try await client.put("\(fixture.prefix)-other", upload([1]), timeout: Self.limit)
            var found: [String] = []
            var token: String?
            var pages = 0
            repeat {
                let page = try await client.list(prefix: "\(fixture.prefix)/", token: token, pageSize: 3, timeout: Self.limit)
                #expect(page.entries.allSatisfy { $0.length == 2 && $0.modified > 1_700_000_000 })
                found += page.entries.map(\.key)
                token = page.nextToken
                pages += 1
            } while token != nil && pages < 10
            #expect(found == keys)
            #expect(pages == 3)
            let rest = try await client.list(
                prefix: "\(fixture.prefix)/", token: nil, after: keys[4], timeout: Self.limit)
            #expect(rest.entries.map(\.key) == Array(keys[5...]))
        }
    }

    @Test func largeBodiesArriveWhole() async throws {
        let fixture = try StoreFixture()
        defer { fixture.stop() }
        let rendition = try TestRendition(1, count: 5_000_001)
        try await fixture.withClient { client in
            let key = "\(fixture.prefix)/large"
            let body = S3Client.Upload(
                body: .file(try rendition.file(), length: rendition.bytes.count), digest: rendition.record.digest,
                mediaType: "video/mp4")
            try await client.put(key, body, timeout: Self.limit)
            let file = try rendition.file(in: fixture.folder)
            let object = try await client.get(key, to: .file(file, limit: 5_000_001), timeout: Self.limit)
            #expect(object?.digest == rendition.record.digest)
            #expect(try file.readAll() == rendition.bytes)
        }
    }

    @Test func aBodyThatDoesNotMatchItsDigestIsRejected() async throws {
        // moto and rclone do not check it.
        if [.moto, .rclone].contains(S3Server.Kind.chosen) { return }
        let fixture = try StoreFixture()
        defer { fixture.stop() }
        try await fixture.withClient { client in
            var upload = upload([1, 2, 3])
            upload.body = .bytes([1, 2, 4])
            let error = await storeError { try await client.put("\(fixture.prefix)/a", upload, timeout: Self.limit) }
            switch error {
            case .rejected, .denied: break
            default: Issue.record("\(String(describing: error))")
            }
        }
    }

    @Test func aWrongSecretIsDenied() async throws {
        // moto does not check it.
        if S3Server.Kind.chosen == .moto { return }
        let fixture = try StoreFixture()
        defer { fixture.stop() }
        try await fixture.withClient(fixture.bucket(secretKey: "wrong", direct: true)) { client in
            let errors = [
                await storeError { _ = try await client.get("a", to: .memory(limit: 1), timeout: Self.limit) },
                await storeError { try await client.put("a", upload([1]), timeout: Self.limit) },
                await storeError { try await client.delete("a", timeout: Self.limit) },
                await storeError { _ = try await client.list(prefix: "", token: nil, timeout: Self.limit) },
            ]
            #expect(errors.map { $0?.label } == Array(repeating: "denied", count: 4))
            #expect(errors[0] == .denied(code: "SignatureDoesNotMatch"))
        }
    }

    @Test func aMissingBucketIsAnError() async throws {
        let fixture = try StoreFixture()
        defer { fixture.stop() }
        try await fixture.withClient(fixture.bucket(bucket: "missing-bucket", direct: true)) { client in
            #expect(
                await storeError { _ = try await client.get("a", to: .memory(limit: 1), timeout: Self.limit) } == .noBucket)
            #expect(await storeError { try await client.put("a", upload([1]), timeout: Self.limit) } == .noBucket)
        }
    }

    @Test func anObjectOverTheLimitIsRefusedBeforeItIsReceived() async throws {
        let fixture = try StoreFixture()
        defer { fixture.stop() }
        try await fixture.withClient { client in
            let key = "\(fixture.prefix)/a"
            try await client.put(key, upload([1, 2, 3]), timeout: Self.limit)
            let error = await storeError { _ = try await client.get(key, to: .memory(limit: 2), timeout: Self.limit) }
            #expect(error == .tooLarge(limit: 2))
        }
    }

    @Test func aCancelledTaskEndsItsRequest() async throws {
        let fixture = try StoreFixture(faults: .init(responses: .init(failure: .stall)))
        defer { fixture.stop() }
        let bucket = try fixture.bucket()
        let http = try HTTPClient(name: "test", limits: .init(running: 4))
        defer { http.stop() }
        let client = S3Client(http, bucket: bucket)
        let task = Task { await storeError { _ = try await client.head("a", timeout: .seconds(600)) } }
        try await waitUntil("the request") { () async in fixture.proxy.failures > 0 }
        task.cancel()
        #expect(await task.value == .cancelled)
    }

    @Test func aStoppedLoopEndsItsRequests() async throws {
        let fixture = try StoreFixture(faults: .init(responses: .init(failure: .stall)))
        defer { fixture.stop() }
        let bucket = try fixture.bucket()
        let http = try HTTPClient(name: "test", limits: .init(running: 4))
        let client = S3Client(http, bucket: bucket)
        let task = Task { await storeError { _ = try await client.head("a", timeout: .seconds(600)) } }
        try await waitUntil("the request") { () async in fixture.proxy.failures > 0 }
        http.stop()
        #expect(await task.value == .closed)
        #expect(await storeError { _ = try await client.head("a", timeout: .seconds(600)) } == .closed)
    }

    @Test func connectionsAreUsedAgain() async throws {
        // moto closes the connection after each response.
        if S3Server.Kind.chosen == .moto { return }
        let fixture = try StoreFixture()
        defer { fixture.stop() }
        try await fixture.withClient(fixture.bucket()) { client in
            for _ in 0..<5 { _ = try await client.get("missing", to: .memory(limit: 1), timeout: Self.limit) }
        }
        #expect(fixture.proxy.connections == 1)
    }
}
