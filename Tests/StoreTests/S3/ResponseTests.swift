import HTTPClient
import SystemIO
import TestSupport
import Testing

@testable import Store

@Suite("Responses that report errors are understood") struct ResponseTests {
    /// The error of a GET that is answered like this, and how often it was sent.
    private func error(_ answers: LoopbackAnswer..., within limit: Duration = .seconds(20)) async throws -> (StoreError?, Int) {
        let rendition = try TestRendition(1)
        let path = "/b/\(try KeySpace(prefix: "").object(rendition.name))"
        let origin = try LoopbackOrigin([path: { answers[min($0.number, answers.count) - 1] }])
        defer { origin.stop() }
        let store = try store(origin)
        defer { store.close() }
        let error = await storeError { _ = try await store.fetch(rendition.name, maxLength: 100, within: limit) }
        return (error, origin.count(path))
    }

    private func store(_ origin: LoopbackOrigin) throws -> SharedStore {
        let endpoint = try S3Endpoint(url: "http://127.0.0.1:\(origin.port)", region: "us-east-1", usesPathStyle: true)
        let configuration = try SharedStoreConfiguration(
            bucket: S3Bucket(endpoint: endpoint, name: "b", keys: .none), prefix: "", timeout: .seconds(10),
            lookupTimeout: .milliseconds(250), outbox: OutboxConfiguration(directory: "outbox", maxBytes: 1 << 30))
        return try SharedStore(configuration, report: { _ in })
    }

    private func answer(_ status: String, _ fields: [String] = [], code: String, _ more: String = "") -> LoopbackAnswer {
        let body = "<?xml version=\"1.0\"?><Error><Code>\(code)</Code><Message>m</Message>\(more)</Error>"
        return .response(status, fields, body: Array(body.utf8))
    }

    @Test func anotherRegionIsNamedAndNotTriedAgain() async throws {
        #expect(
            try await error(answer("301 Moved", ["x-amz-bucket-region: eu-west-3"], code: "PermanentRedirect"))
                == (.wrongRegion(expected: "eu-west-3"), 1))
        #expect(
            try await error(answer("307 Temporary Redirect", code: "TemporaryRedirect")) == (.wrongRegion(expected: nil), 1))
        #expect(
            try await error(answer("400 Bad", code: "AuthorizationHeaderMalformed", "<Region>eu-west-3</Region>"))
                == (.wrongRegion(expected: "eu-west-3"), 1))
        let description = StoreError.wrongRegion(expected: "eu-west-3").description
        #expect(description == "The bucket is in the region eu-west-3, not in the configured one.")
    }

    @Test func refusalsAreNotTriedAgain() async throws {
        #expect(try await error(answer("403 Forbidden", code: "AccessDenied")) == (.denied(code: "AccessDenied"), 1))
        #expect(
            try await error(answer("400 Bad", code: "InvalidRequest")) == (.rejected(status: 400, code: "InvalidRequest"), 1))
        #expect(try await error(answer("404 Not Found", code: "NoSuchBucket")) == (.noBucket, 1))
        #expect(try await error(.response("304 Not Modified", declaresLength: false)).0?.label == "invalid_response")
    }

    @Test(arguments: ["ExpiredToken", "InvalidToken", "TokenRefreshRequired"])
    func credentialsThatHaveExpiredAreAnOutage(_ code: String) async throws {
        let (error, count) = try await error(answer("400 Bad", code: code))
        #expect(error == .denied(code: code) && count == 1)
        #expect(error?.isOutage(of: .put) == true && error?.isOutage(of: .delete) == true)
    }

    @Test func aMissingObjectIsNoErrorWhateverTheBody() async throws {
        #expect(try await error(answer("404 Not Found", code: "NoSuchKey")) == (nil, 1))
        #expect(try await error(.response("404 Not Found", body: Array("<html>".utf8))) == (nil, 1))
    }

    @Test func aDeletionIsNotDoneIfOnlyAProxyHasAnswered() async throws {
        let http = try HTTPClient(name: "test", limits: .init(running: 1))
        defer { http.stop() }
        for (response, expected) in [
            (answer("404 Not Found", code: "NoSuchKey"), nil), (.response("204 No Content", declaresLength: false), nil),
            (.response("404 Not Found", body: Array("<html>".utf8)), .serverFailed(status: 404, code: "without a code")),
        ] as [(LoopbackAnswer, StoreError?)] {
            let origin = try LoopbackOrigin(["/b/k": { _ in response }])
            defer { origin.stop() }
            let endpoint = try S3Endpoint(url: "http://127.0.0.1:\(origin.port)", region: "us-east-1", usesPathStyle: true)
            let client = S3Client(http, bucket: try S3Bucket(endpoint: endpoint, name: "b", keys: .none))
            #expect(await storeError { try await client.delete("k", timeout: .seconds(20)) } == expected)
        }
    }

    @Test func failuresOfTheServerAreTriedAgain() async throws {
        let missing = answer("404 Not Found", code: "NoSuchKey")
        #expect(try await error(answer("500 Internal", code: "InternalError"), missing) == (nil, 2))
        #expect(try await error(answer("503 Slow", code: "SlowDown"), .status(429), missing) == (nil, 3))
        #expect(try await error(answer("503 Slow", ["Retry-After: 0"], code: "SlowDown"), missing) == (nil, 2))
        for status in ["400 Bad", "408 Timeout"] {
            #expect(try await error(answer(status, code: "RequestTimeout"), missing) == (nil, 2))
        }
        #expect(try await error(answer("409 Conflict", code: "OperationAborted"), missing) == (nil, 2))
        #expect(
            try await error(answer("500 Internal", code: "InternalError"))
                == (.serverFailed(status: 500, code: "InternalError"), 3))
    }

    /// The proxy in front of a store may redirect to TLS, or have no server to pass a request to.
    @Test func theResponseOfAProxyIsNotTakenForThatOfTheStore() async throws {
        let target = "https://127.0.0.1/"
        #expect(try await error(.redirect(to: target, 301)).0 == .invalidResponse(cause: "it redirects to \(target)"))
        #expect(
            try await error(.response("503 Service Unavailable", body: Array("<html>".utf8)))
                == (.serverFailed(status: 503, code: "without a code"), 3))
    }

    @Test func aWaitThatIsLongerThanTheDeadlineIsNotBegun() async throws {
        let start = ContinuousClock.now
        let (error, count) = try await error(answer("503 Slow", ["Retry-After: 60"], code: "SlowDown"))
        #expect(error == .throttled(retryAfter: .seconds(60)))
        #expect(count == 1)
        #expect(ContinuousClock.now - start < .seconds(20))
    }

    /// A server that keeps no metadata has the record beside the object.
    @Test func theRequestForARecordHasTheTimeThatItsObjectLeft() async throws {
        let (rendition, keys) = (try TestRendition(1), try KeySpace(prefix: ""))
        let (object, record) = ("/b/\(keys.object(rendition.name))", "/b/\(keys.record(rendition.name))")
        let late = [UInt8]("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na".utf8)
        let origin = try LoopbackOrigin([
            object: { _ in LoopbackAnswer(steps: [.pause(.seconds(3)), .send(late)]) },
            record: { _ in LoopbackAnswer(steps: [.hang]) },
        ])
        defer { origin.stop() }
        let store = try store(origin)
        defer { store.close() }
        let start = ContinuousClock.now
        let error = await storeError { _ = try await store.fetch(rendition.name, maxLength: 100, within: .seconds(6)) }
        #expect(error == .timedOut && origin.count(record) == 1)
        // With six seconds for each request, these would be at least nine.
        #expect(ContinuousClock.now - start < .seconds(9))
    }

    /// libcurl takes what has arrived for the whole response.
    @Test(arguments: ["200 OK", "404 Not Found", "500 Internal"]) func aHeadThatIsCutIsNoResponse(_ status: String) async throws
    {
        let cut = LoopbackAnswer.raw("HTTP/1.1 \(status)\r\nX-Request: a\r\nContent-Len")
        #expect(try await error(cut) == (.interrupted(cause: "its head is incomplete"), 3))
        #expect(try await error(cut, answer("404 Not Found", code: "NoSuchKey")) == (nil, 2))
    }

    @Test func objectsThatAreTooLargeForTheDeadlineAreNoOutage() async throws {
        let rendition = try TestRendition(1)
        let path = "/b/\(try KeySpace(prefix: "").object(rendition.name))"
        let drip = LoopbackAnswer.raw(
            "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n",
            then: [.trickle([UInt8](repeating: 0x41, count: 100), every: .milliseconds(100))])
        let origin = try LoopbackOrigin([path: { _ in drip }])
        defer { origin.stop() }
        let store = try store(origin)
        defer { store.close() }
        for _ in 0..<3 {
            let error = await storeError { _ = try await store.fetch(rendition.name, maxLength: 100, within: .seconds(1)) }
            #expect(error == .tooSlow)
        }
        #expect(store.statistics.breaker == .closed && store.statistics.failures == ["too_slow": 3])
        // The same request would take as long again.
        #expect(store.statistics.retries == 0 && origin.count(path) == 3)
    }

    @Test func textOfTheServerIsCleanedForTheLog() async throws {
        let long = String(repeating: "A", count: 500)
        let (error, _) = try await error(answer("403 Forbidden", code: "a&#10;b\u{1B}[1m\(long)"))
        guard case .denied(let code) = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(code.hasPrefix("ab[1mAAA") && code.count == 64)
    }

    private func list(_ keys: [String], size: Int) -> LoopbackAnswer {
        let entries = keys.map { key in
            "<Contents><Key>\(key)</Key><Size>\(size)</Size><LastModified>1970-01-01T00:00:00Z</LastModified></Contents>"
        }
        let list = "<?xml version=\"1.0\"?><ListBucketResult>\(entries.joined())</ListBucketResult>"
        return .response("200 OK", body: Array(list.utf8))
    }

    private func keys() throws -> [String] {
        try (1...2).map { try KeySpace(prefix: "").object(TestRendition($0).name) }
    }

    @Test func aServerWithoutDeleteObjectsDeletesOneAtATime() async throws {
        let keys = try keys()
        let found = list(keys, size: 10)
        let origin = try LoopbackOrigin(["/b": { $0.method == "POST" ? .response("501 Not Implemented") : found }])
        defer { origin.stop() }
        for key in keys { origin.on("/b/\(key)", .response("204 No Content")) }
        let store = try store(origin)
        defer { store.close() }
        #expect(try await store.prune(storedBefore: 1).bytes == 20)
        #expect(origin.requests.filter { $0.method == "DELETE" }.map(\.target) == keys.map { "/b/\($0)" })
    }

    @Test func impossibleSizesInAListAreSummed() async throws {
        let found = list(try keys(), size: .max)
        let origin = try LoopbackOrigin(["/b": { _ in found }])
        defer { origin.stop() }
        let store = try store(origin)
        defer { store.close() }
        let counted = try await store.prune(storedBefore: 1, isDryRun: true)
        #expect(counted.deleted == 2 && counted.bytes == .max)
    }

    @Test func headsAndBodiesOfErrorsAreBounded() async throws {
        let fields = (0..<2000).map { "X-Filler-\($0): \(String(repeating: "f", count: 60))" }
        #expect(try await error(.response("200 OK", fields)).0 == .invalidResponse(cause: "head over 65536 bytes"))
        let endless = LoopbackAnswer.raw(
            "HTTP/1.1 403 Forbidden\r\n\r\n", then: [.sendForever([UInt8](repeating: 0x41, count: 65536))])
        #expect(try await error(endless, within: .milliseconds(300)).0 == .timedOut)
    }

    @Test func aBodyWithoutALengthIsBounded() async throws {
        let endless = LoopbackAnswer.raw(
            "HTTP/1.1 200 OK\r\n\r\n", then: [.sendForever([UInt8](repeating: 0x41, count: 65536))])
        #expect(try await error(endless).0 == .tooLarge(limit: 100))
        #expect(
            try await error(.raw("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", then: [.hang])).0
                == .tooLarge(limit: 100))
    }
}
