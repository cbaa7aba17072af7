import Fetch
import SystemIO
import TestSupport
import Testing

@Suite("A fetcher fetches sources over HTTP") struct FetcherTests {
    @Test func fetchReturnsBytesHashAndValidators() async throws {
        let gif = TestGIF.large(300_000)
        try await withOrigin { origin, fetcher in
            origin.on("/a.gif", .ok(gif, ["ETag: \"v1\"", "Cache-Control: max-age=60"]))
            let source = try await fetcher.source(origin.url("/a.gif?v=2"))
            #expect(try source.bytes.readAll() == gif)
            #expect(source.count == gif.count)
            // Computed by sha256sum.
            let hash = "3f8ee3853a0d0c1c0ab05ea42b4c7d1e2ad019c307268961f8d028bf64f1d1b9"
            #expect(source.sha256.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined() == hash)
            #expect(source.validators == SourceValidators(etag: "\"v1\""))
            #expect(source.cacheDirectives.maxAge == 60)
            #expect(origin.requests.last?.query == "v=2")
            #expect(fetcher.counters().bytes == gif.count)
            #expect(fetcher.counters().active == 0)
        }
    }

    @Test func requestNamesTheServiceAndTheAcceptedContent() async throws {
        try await withOrigin({ $0.userAgent = "gifreel/1.2" }) { origin, fetcher in
            origin.on("/a.gif", .ok(TestGIF.dot))
            _ = try await fetcher.source(origin.url("/a.gif"))
            let headers = try #require(origin.requests.first).headers
            #expect(headers["user-agent"] == "gifreel/1.2")
            #expect(headers["accept-encoding"] == "identity")
            #expect(headers["cdn-loop"] == "gifreel")
            #expect(headers["host"] == "127.0.0.1:\(origin.port)")
            #expect(headers["cookie"] == nil && headers["referer"] == nil && headers["authorization"] == nil)
        }
    }

    @Test(arguments: [
        ("/a.gif", "image/gif, */*;q=0.1"), ("/a.WebP", "image/webp, */*;q=0.1"),
        ("/a", "image/gif, image/webp, image/avif, */*;q=0.1"),
        ("/v1.2/a.mp4", "image/gif, image/webp, image/avif, */*;q=0.1"),
        ("/webp", "image/gif, image/webp, image/avif, */*;q=0.1"),
        ("/a.gif/b.avif", "image/avif, */*;q=0.1"),
    ])
    func aRequestAcceptsTheFormatOfItsPathOrAllThatAreTaken(_ path: String, _ accept: String) async throws {
        let formats = ["gif", "webp", "avif"].map { AcceptedFormat(mediaTypes: ["image/\($0)"], fileExtensions: [$0]) }
        try await withOrigin({ $0.formats = formats }) { origin, fetcher in
            origin.on(path, .ok(TestGIF.dot))
            _ = try await fetcher.source(origin.url(path))
            #expect(origin.requests.first?.headers["accept"] == accept)
        }
    }

    @Test func validatorsMakeARequestConditional() async throws {
        try await withOrigin { origin, fetcher in
            origin.on("/a.gif") { .tagged("\"v1\"", TestGIF.dot, $0) }
            let url = try SourceURL(origin.url("/a.gif"))
            let first = try await fetcher.source(url.canonical)
            guard case .notModified(let same) = try await fetcher.fetch(url, validators: first.validators) else {
                Issue.record("fetched again")
                return
            }
            #expect(same.validators == first.validators)
            guard case .fetched = try await fetcher.fetch(url, validators: SourceValidators(etag: "\"v0\"")) else {
                Issue.record("not fetched")
                return
            }
        }
    }

    /// A 304 about other bytes must not renew the known ones, which would then stay for good.
    @Test func aConfirmationOfAnotherEntityTagIsAskedAgainWithoutConditions() async throws {
        try await withOrigin { origin, fetcher in
            let changed = TestGIF.large(1000)
            origin.on("/a.gif") { request in
                request.headers["if-none-match"] == nil
                    ? .ok(changed, ["ETag: \"v2\""])
                    : .raw("HTTP/1.1 304 Not Modified\r\nETag: \"v2\"\r\n\r\n")
            }
            let outcome = try await fetcher.fetch(
                SourceURL(origin.url("/a.gif")), validators: SourceValidators(etag: "\"v1\""))
            guard case .fetched(let source) = outcome else {
                Issue.record("\(outcome)")
                return
            }
            #expect(source.count == changed.count && source.validators.etag == "\"v2\"")
            #expect(origin.requests.map { $0.headers["if-none-match"] } == ["\"v1\"", nil])
        }
    }

    @Test func connectionsAreReused() async throws {
        try await withOrigin { origin, fetcher in
            origin.on("/a.gif", .ok(TestGIF.dot))
            for _ in 0..<5 {
                _ = try await fetcher.source(origin.url("/a.gif"))
                await #expect(throws: FetchError.notFound) { try await fetcher.source(origin.url("/none.gif")) }
            }
            #expect(origin.connections == 1)
            #expect(fetcher.counters().connections == 1)
        }
    }

    /// The origin's kernel holds the body back until the head is acknowledged, which it is at once on a new connection only.
    @Test func aBodyThatIsWrittenAfterItsHeadDoesNotWaitForADelayedAcknowledgement() async throws {
        try await withOrigin { origin, fetcher in
            let head = "HTTP/1.1 200 OK\r\nContent-Type: image/gif\r\nContent-Length: \(TestGIF.dot.count)\r\n\r\n"
            origin.on("/a.gif", LoopbackAnswer(steps: [.send(Array(head.utf8)), .send(TestGIF.dot)], keepsAlive: true))
            _ = try await fetcher.source(origin.url("/a.gif"))
            // A delayed acknowledgement takes 40 ms each time. A busy machine is slow now and then.
            var shortest = Duration.seconds(1)
            for _ in 0..<40 where shortest >= .milliseconds(35) {
                let time = try await ContinuousClock().measure { _ = try await fetcher.source(origin.url("/a.gif")) }
                shortest = min(shortest, time)
            }
            #expect(origin.connections == 1 && shortest < .milliseconds(35), "\(shortest)")
        }
    }

    @Test func surplusOfAResponseIsNotReadAsTheNextResponse() async throws {
        try await withOrigin { origin, fetcher in
            let (isRead, isSent) = (try LoopbackGate(), try LoopbackGate())
            let forged = LoopbackAnswer.ok(TestGIF.large(1000))
            let surplus: [LoopbackAnswer.Step] = [.wait(until: isRead)] + forged.steps + [.open(isSent)]
            origin.on("/long.gif", LoopbackAnswer(steps: LoopbackAnswer.ok(TestGIF.dot).steps + surplus, keepsAlive: true))
            origin.on("/a.gif", .ok(TestGIF.dot))
            _ = try await fetcher.source(origin.url("/long.gif"))
            isRead.open()
            try await waitUntil("the forged answer to be sent") { isSent.isOpen }
            let next = try await fetcher.source(origin.url("/a.gif"))
            #expect(next.count == TestGIF.dot.count)
            #expect(origin.count("/a.gif") == 1)
            #expect(origin.connections == 2)
        }
    }

    @Test func timeoutOfAnIdleConnectionIsNotTheResponseToTheNextRequest() async throws {
        try await withOrigin { origin, fetcher in
            let farewell = LoopbackAnswer.status(408, ["Connection: close"])
            origin.on("/a.gif", .ok(TestGIF.dot))
            origin.on("/b.gif") { $0.number == 1 ? farewell : .ok(TestGIF.dot) }
            origin.on("/c.gif", farewell)
            _ = try await fetcher.source(origin.url("/a.gif"))
            #expect(try await fetcher.source(origin.url("/b.gif")).count == TestGIF.dot.count)
            #expect(origin.connections == 2)
            // On a new connection, a 408 is the response to the request.
            await #expect(throws: FetchError.failed(.status(408, retryAfter: nil))) {
                try await fetcher.source(origin.url("/c.gif"))
            }
            #expect(origin.count("/c.gif") == 2 && origin.connections == 3)
        }
    }

    @Test func cancellingTheTaskEndsTheTransfer() async throws {
        try await withOrigin { origin, fetcher in
            origin.on("/hang.gif", LoopbackAnswer(steps: [.hang]))
            let task = Task { try await fetcher.source(origin.url("/hang.gif")) }
            try await waitUntil("the request") { origin.count("/hang.gif") == 1 }
            task.cancel()
            await #expect(throws: FetchError.cancelled) { try await task.value }
            #expect(fetcher.counters().active == 0)
        }
    }

    @Test func taskThatIsAlreadyCancelledFetchesNothing() async throws {
        try await withOrigin { origin, fetcher in
            origin.on("/hang.gif", LoopbackAnswer(steps: [.hang]))
            let task = Task {
                while !Task.isCancelled { await Task.yield() }
                return try await fetcher.source(origin.url("/hang.gif"))
            }
            task.cancel()
            await #expect(throws: FetchError.cancelled) { try await task.value }
        }
    }

    @Test func shutdownEndsFetchesInProgressAndRefusesNewOnes() async throws {
        try await withOrigin { origin, fetcher in
            origin.on("/hang.gif", LoopbackAnswer(steps: [.hang]))
            let task = Task { try await fetcher.source(origin.url("/hang.gif")) }
            try await waitUntil("the request") { origin.count("/hang.gif") == 1 }
            fetcher.shutdown()
            fetcher.shutdown()
            await #expect(throws: FetchError.closed) { try await task.value }
            await #expect(throws: FetchError.closed) { try await fetcher.source(origin.url("/hang.gif")) }
        }
    }
}
