import Fetch
import SystemIO
import TestSupport
import Testing

@Suite("Fetches are limited in size, number and time") struct FetchLimitTests {
    @Test func bodyOverTheLimitIsRefusedByItsDeclaredLength() async throws {
        try await withOrigin({ $0.maxBytes = 1000 }) { origin, fetcher in
            origin.on("/declared.gif", .raw("HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n", then: [.hang]))
            origin.on("/exact.gif", .ok(TestGIF.large(1000)))
            await #expect(throws: FetchError.tooLarge(limit: 1000, declared: 1001)) {
                try await fetcher.source(origin.url("/declared.gif"))
            }
            let whole = try await fetcher.source(origin.url("/exact.gif"))
            #expect(whole.count == 1000)
        }
    }

    @Test func endlessBodyIsStoppedAtTheLimit() async throws {
        try await withOrigin({ $0.maxBytes = 1 << 20 }) { origin, fetcher in
            origin.on("/endless.gif", .raw("HTTP/1.1 200 OK\r\n\r\n", then: [.sendForever(TestGIF.large(65536))]))
            await #expect(throws: FetchError.tooLarge(limit: 1 << 20, declared: nil)) {
                try await fetcher.source(origin.url("/endless.gif"))
            }
            #expect(fetcher.counters().bytes < 2 << 20)
        }
    }

    @Test func contentOtherThanGIFIsStoppedAtItsFirstBytes() async throws {
        try await withOrigin { origin, fetcher in
            let page = Array("<!doctype html>".utf8) + [UInt8](repeating: 0x20, count: 100)
            origin.on("/page.gif", .raw("HTTP/1.1 200 OK\r\nContent-Type: image/gif\r\n\r\n", page, then: [.hang]))
            await #expect(throws: FetchError.notAnAnimation(looksLike: .html)) {
                try await fetcher.source(origin.url("/page.gif"))
            }
        }
    }

    /// A body without a length ends with the connection, which the origin keeps open.
    @Test(arguments: ["", "Content-Length: 1000000\r\n"])
    func aStatusWithoutContentDoesNotWaitForTheEndOfItsBody(fields: String) async throws {
        try await withOrigin { origin, fetcher in
            origin.on("/a.gif", .raw("HTTP/1.1 404 Not Found\r\n\(fields)\r\n", then: [.hang]))
            origin.on("/hook", .raw("HTTP/1.1 200 OK\r\n\(fields)\r\n", then: [.hang]))
            let time = try await ContinuousClock().measure {
                #expect(try await fetcher.failure(origin.url("/a.gif")) == .notFound)
                try await fetcher.post([1], to: SourceURL(origin.url("/hook")), fields: [])
            }
            // Half of the limit for one request.
            #expect(time < .seconds(30))
        }
    }

    @Test func gifIsRecognizedFromSinglyArrivingBytes() async throws {
        try await withOrigin({ $0.stallRate = 1 }) { origin, fetcher in
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: \(TestGIF.dot.count)\r\n\r\n"
            origin.on("/slow.gif", .raw(head, then: [.trickle(TestGIF.dot, every: .milliseconds(2))]))
            let source = try await fetcher.source(origin.url("/slow.gif"))
            #expect(try source.bytes.readAll() == TestGIF.dot)
        }
    }

    @Test func aBodyOfTinyChunksIsReceivedWholeAndLimited() async throws {
        let gif = TestGIF.large(50_000)
        let chunks = gif.flatMap { Array("1\r\n".utf8) + [$0] + Array("\r\n".utf8) }
        try await withOrigin({ $0.maxBytes = gif.count }) { origin, fetcher async throws in
            let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            origin.on("/a.gif", .raw(head, chunks + Array("0\r\n\r\n".utf8)))
            #expect(try await fetcher.source(origin.url("/a.gif")).bytes.readAll() == gif)
            origin.on("/long.gif", .raw(head, chunks + Array("1\r\n!\r\n".utf8), then: [.hang]))
            await #expect(throws: FetchError.tooLarge(limit: gif.count, declared: nil)) {
                try await fetcher.source(origin.url("/long.gif"))
            }
        }
    }

    @Test func aFetchWaitsUntilItMayBegin() async throws {
        try await withOrigin { origin, fetcher async throws in
            origin.on("/a.gif", .ok(TestGIF.dot))
            let gate = TestGate()
            let waiting = Task { try await fetcher.fetch(SourceURL(origin.url("/a.gif")), arriving: gate.arriving) }
            try await waitUntil("the second question") { gate.asked > 1 }
            // It occupies no place of the origin meanwhile.
            #expect(try await fetcher.source(origin.url("/a.gif")).count == TestGIF.dot.count)
            #expect(fetcher.counters().waiting == 1 && origin.count("/a.gif") == 1)
            gate.open()
            guard case .fetched(let source) = try await waiting.value else { return #expect(Bool(false)) }
            #expect(source.count == TestGIF.dot.count && origin.count("/a.gif") == 2)
        }
    }

    @Test func aFetchThatMayNotBeginInTimeIsRefused() async throws {
        try await withOrigin({ $0.timeout = .milliseconds(100) }) { origin, fetcher async throws in
            let arriving = ArrivingSource()
            arriving.setGate { false }
            await #expect(throws: FetchError.busy) {
                try await fetcher.fetch(SourceURL(origin.url("/a.gif")), arriving: arriving)
            }
            #expect(origin.count("/a.gif") == 0 && fetcher.counters().waiting == 0)
        }
    }

    @Test func fetchesFromOneHostAreLimited() async throws {
        try await withOrigin({ $0.perHost = 2 }) { origin, fetcher in
            let gate = try LoopbackGate()
            origin.on("/a.gif", LoopbackAnswer.ok(TestGIF.dot).after(gate))
            try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<6 { group.addTask { try await fetcher.source(origin.url("/a.gif")).count } }
                try await waitUntil("two requests, and four that wait") {
                    origin.count("/a.gif") == 2 && fetcher.counters().waiting == 4
                }
                #expect(fetcher.counters().active == 2)
                gate.open()
                for try await count in group { #expect(count == TestGIF.dot.count) }
            }
            #expect(origin.connections == 2)
        }
    }

    @Test func slowOriginDoesNotBlockFetchesFromOthers() async throws {
        let slow = try LoopbackOrigin()
        defer { slow.stop() }
        slow.on("/a.gif", LoopbackAnswer(steps: [.hang]))
        try await withOrigin({
            $0.concurrency = 3
            $0.perHost = 2
            $0.queuePerHost = 1
            $0.queue = 2
        }) { quick, fetcher in
            quick.on("/a.gif", .ok(TestGIF.dot))
            let stuck = (0..<3).map { _ in Task { try await fetcher.source(slow.url("/a.gif")) } }
            try await waitUntil("two requests, and one that waits") {
                slow.count("/a.gif") == 2 && fetcher.counters().waiting == 1
            }
            await #expect(throws: FetchError.busy) { try await fetcher.source(slow.url("/a.gif")) }
            let source = try await fetcher.source(quick.url("/a.gif"))
            #expect(source.count == TestGIF.dot.count)
            for task in stuck { task.cancel() }
        }
    }

    @Test func cancelledFetchInTheQueueFreesItsCapacity() async throws {
        try await withOrigin({
            $0.concurrency = 1
            $0.queue = 1
        }) { origin, fetcher in
            let gate = try LoopbackGate()
            origin.on("/held.gif", LoopbackAnswer.ok(TestGIF.dot).after(gate))
            origin.on("/a.gif", .ok(TestGIF.dot))
            let first = Task { try await fetcher.source(origin.url("/held.gif")).count }
            try await waitUntil("the request") { origin.count("/held.gif") == 1 }
            let second = Task { try await fetcher.source(origin.url("/a.gif")).count }
            try await waitUntil("a fetch that waits") { fetcher.counters().waiting == 1 }
            second.cancel()
            await #expect(throws: FetchError.cancelled) { try await second.value }
            #expect(fetcher.counters().waiting == 0)
            gate.open()
            let counts = [try await first.value, try await fetcher.source(origin.url("/a.gif")).count]
            #expect(counts == [TestGIF.dot.count, TestGIF.dot.count])
            #expect(fetcher.counters().active == 0)
        }
    }

    @Test func eachOfManyConcurrentFetchesEndsOnce() async throws {
        try await withOrigin({
            $0.concurrency = 8
            $0.perHost = 4
            $0.queue = 1000
            $0.queuePerHost = 1000
        }) { origin, fetcher in
            origin.on("/a.gif", .ok(TestGIF.dot))
            origin.on("/b.gif", .redirect(to: "/a.gif"))
            origin.on("/hang.gif", LoopbackAnswer(steps: [.hang]))
            let paths = ["/a.gif", "/b.gif", "/none.gif", "/hang.gif"]
            let tasks = (0..<400).map { number in
                Task { try await fetcher.failure(origin.url(paths[number % 4])) }
            }
            for (number, task) in tasks.enumerated() where number % 4 == 3 || number % 7 == 0 { task.cancel() }
            var cancelled = 0
            for (number, task) in tasks.enumerated() {
                let error = try await task.value
                if error == .cancelled { cancelled += 1 }
                let expected: FetchError? = number % 4 == 2 ? .notFound : number % 4 == 3 ? .cancelled : nil
                #expect(error == expected || (number % 7 == 0 && error == .cancelled))
            }
            let counters = fetcher.counters()
            #expect(counters.active == 0 && counters.waiting == 0)
            #expect(origin.connections <= 4 + cancelled)
        }
    }

    @Test func timeInTheQueueIsBounded() async throws {
        try await withOrigin({
            $0.concurrency = 1
            $0.timeout = .seconds(1)
        }) { origin, fetcher in
            let gate = try LoopbackGate()
            origin.on("/a.gif", LoopbackAnswer.ok(TestGIF.dot).after(gate))
            async let first = fetcher.failure(origin.url("/a.gif"))
            async let second = fetcher.failure(origin.url("/a.gif"))
            let results = try await [first, second]
            #expect(results.contains(.timeout(.total, limit: .seconds(1))))
            // The first fetch ends when the time of the second one in the queue ends: either may be seen first.
            #expect(results.contains { $0 == .busy } || results.allSatisfy { $0 == .timeout(.total, limit: .seconds(1)) })
        }
    }
}
