import Glibc
import SystemIO
import TestSupport
import Testing

@testable import HTTP

@Suite("Finished requests are logged") struct AccessLogTests {
    @Test func observerReceivesEveryRequest() async throws {
        let lines = Shared<[String]>([])
        try await withServer(observer: AccessCollector(lines: lines)) { server, port in
            try await onThread {
                let client = try RawClient(port: port)
                _ = try client.request("GET /file?q HTTP/1.1\r\nHost: h\r\n\r\n")
                _ = try client.request("HEAD /file HTTP/1.1\r\nHost: h\r\n\r\n", method: "HEAD")
                _ = try client.request("GET /file HTTP/1.1\r\nHost: h\r\nRange: bytes=0-9\r\n\r\n")
                _ = try client.request("GET /x HTTP/1.1\r\nHost: h\r\nBroken\r\n\r\n")
                _ = try RawClient(port: port).request("\u{1}\r\n\r\n")
            }
            await server.drain()
            #expect(
                lines.value.sorted() == [
                    "127.0.0.1   400 31 true []",
                    "127.0.0.1 GET /file 206 10 true [test; hit]",
                    "127.0.0.1 GET /file?q 404 12 true []",
                    "127.0.0.1 GET /x 400 29 true []",
                    "127.0.0.1 HEAD /file 200 0 true [test; hit]",
                ])
        }
    }

    @Test func observerReceivesIncompleteResponses() async throws {
        let lines = Shared<[String]>([])
        let content = [UInt8](repeating: 1, count: 20_000_000)
        let resource = HTTPResource(
            file: try temporaryFile(content), length: content.count, contentType: "video/mp4", entityTag: "\"x\"",
            lastModified: 0)
        let isAsked = Shared(false)
        let handler = ClosureHandler { request in
            if request.target == "/file" { return .now(HTTPResponse(resource, headers: ["Cache-Status": "c"])) }
            isAsked.update { $0 = true }
            return .later {
                await Shared(false).waitUntilOpen()
                return HTTPResponse(status: 204)
            }
        }
        try await withServer(handler, observer: AccessCollector(lines: lines)) { server, port in
            try await onThread {
                let client = try RawClient(port: port, receiveBuffer: 4096)
                try client.send("GET /file HTTP/1.1\r\nHost: h\r\n\r\n")
                _ = try client.read(count: 100)
                // A client that leaves before its request is read could still wait for its response.
                let leaving = try RawClient(port: port)
                try withExtendedLifetime(leaving) {
                    try leaving.send("GET /later HTTP/1.1\r\nHost: h\r\n\r\n")
                    try isAsked.block { $0 }
                }
            }
            try await lines.wait { $0.count == 2 }
        }
        let sorted = lines.value.sorted()
        #expect(sorted.first?.hasPrefix("127.0.0.1 GET /file 200 ") == true)
        #expect(sorted.first?.hasSuffix(" false [c]") == true)
        #expect(sorted.last == "127.0.0.1 GET /later 0 0 false []")
    }

    @Test func batchesThatASlowObserverMissesAreCounted() async throws {
        struct Slow: HTTPObserver {
            let gate: Shared<Bool>
            let counts: Shared<[Int]>
            let dropped: Shared<Int>

            func requestsDropped(_ batch: HTTPAccessBatch) { dropped.update { $0 += batch.count } }

            func requestsFinished(_ batch: HTTPAccessBatch) {
                try? blockUntil("the gate") { gate.value }
                counts.update {
                    $0[0] += batch.count
                    $0[1] += batch.lost
                }
            }
        }
        let gate = Shared(false)
        let counts = Shared([0, 0])
        let dropped = Shared(0)
        let log = AccessLog(observers: [Slow(gate: gate, counts: counts, dropped: dropped)])
        try #require(SystemThread.start(name: "test-log") { log.run() }).detach()
        let recorder = AccessRecorder(log)
        let nothing = UnsafeRawBufferPointer(start: nil, count: 0)
        let total = 100 * AccessRecorder.batchSize
        for _ in 0..<total {
            recorder.record(
                AccessEntry(), AccessTexts(method: nothing, target: nothing, requestID: nothing, cacheStatus: nothing))
        }
        gate.update { $0 = true }
        try await counts.wait { $0[0] + $0[1] == total }
        log.close()
        #expect(counts.value[1] > 0 && dropped.value == counts.value[1])
    }

    @Test func largeResponsesArePostedWithoutWaitingForOtherRequests() {
        let log = AccessLog(observers: [])
        let recorder = AccessRecorder(log)
        let nothing = UnsafeRawBufferPointer(start: nil, count: 0)
        let texts = AccessTexts(method: nothing, target: nothing, requestID: nothing, cacheStatus: nothing)
        let quarter = AccessEntry(bytes: AccessRecorder.batchResponses / 4)
        for _ in 0..<2 {
            recorder.record(quarter, texts)
            recorder.record(quarter, texts: nothing)
            recorder.record(quarter, texts)
            #expect(log.take().batches.isEmpty)
            recorder.record(quarter, texts: nothing)
            #expect(log.take().batches.map(\.count) == [4] && recorder.isEmpty)
        }
    }

    @Test func clientFieldsAreWrittenOnlyIfEnabled() throws {
        var batch = HTTPAccessBatch()
        func text(_ string: StaticString) -> UnsafeRawBufferPointer { string.bytes }
        var texts = AccessTexts(method: text("GET"), target: text("/"), requestID: text("id"), cacheStatus: text(""))
        texts.referrer = text("https://page.test/\"")
        texts.userAgent = text("Agent\u{1b}/1")
        batch.append(AccessEntry(), texts)
        let lines = LogFormat.allCases.flatMap { format in
            [false, true].map { includesClientFields in
                var encoder = AccessLineEncoder(format: format, includesClientFields: includesClientFields)
                batch.forEach { encoder.append($0) }
                return String(decoding: encoder.bytes, as: UTF8.self)
            }
        }
        #expect(!lines[0].contains("Agent") && !lines[2].contains("Agent"))
        #expect(lines[1].hasSuffix(" id \"-\" \"https://page.test/\\\"\" \"Agent?/1\"\n"), "\(lines[1])")
        #expect(
            lines[3].hasSuffix("\"cache_status\":\"\",\"referer\":\"https://page.test/\\\"\",\"user_agent\":\"Agent?/1\"}\n"),
            "\(lines[3])")
    }

    @Test func batchLongerThanTheQueueLosesOnlyWhatDoesNotFit() throws {
        let number = open("/dev/null", O_WRONLY | O_CLOEXEC)
        try #require(number >= 0)
        let sink = OwnedDescriptor(taking: number)
        let writer = try HTTPAccessLogWriter(duplicating: sink.number, format: .text, capacity: 1 << 20)
        let nothing = UnsafeRawBufferPointer(start: nil, count: 0)
        let path = [UInt8](repeating: UInt8(ascii: "/"), count: 16_000)
        var batch = HTTPAccessBatch()
        path.withUnsafeBytes { target in
            for _ in 0..<100 {
                batch.append(
                    AccessEntry(), AccessTexts(method: nothing, target: target, requestID: nothing, cacheStatus: nothing))
            }
        }
        writer.requestsFinished(batch)
        writer.close(within: .seconds(10))
        // Sixty lines fit into the queue even if none is written meanwhile.
        #expect(writer.droppedLines <= 40)
    }

    @Test func memoryOfQueuedRequestsIsBounded() {
        /// Never takes a batch, because its thread does not run.
        struct Nobody: HTTPObserver {
            func requestsFinished(_ batch: HTTPAccessBatch) {}
        }
        let log = AccessLog(observers: [Nobody()])
        let recorder = AccessRecorder(log)
        let target = [UInt8](repeating: 0x61, count: 16_000)
        let count = 20_000
        target.withUnsafeBytes { target in
            let nothing = UnsafeRawBufferPointer(start: nil, count: 0)
            for _ in 0..<count {
                recorder.record(
                    AccessEntry(),
                    AccessTexts(method: nothing, target: target, requestID: nothing, cacheStatus: nothing))
            }
        }
        recorder.flush()
        let (batches, _) = log.take()
        #expect(batches.reduce(0) { $0 + $1.memory } <= AccessLog.capacity)
        #expect(batches.reduce(0) { $0 + $1.count + $1.lost } == count)
        #expect(batches.reduce(0) { $0 + $1.count } > 100)
    }

    @Test func clientsCannotForgeLogLines() async throws {
        for format in LogFormat.allCases {
            var pipe: [Int32] = [0, 0]
            #expect(Glibc.pipe(&pipe) == 0)
            let output = SharedDescriptor(OwnedDescriptor(taking: pipe[0]))
            let writer = try HTTPAccessLogWriter(duplicating: pipe[1], format: format)
            close(pipe[1])
            var batch = HTTPAccessBatch()
            func text(_ string: StaticString) -> UnsafeRawBufferPointer { string.bytes }
            let entry = AccessEntry(
                client: IPAddress("::1"), time: 784_111_777_042, duration: 1_002_003, status: 200, bytes: 4711,
                isComplete: false)
            batch.append(
                entry,
                AccessTexts(
                    method: text("GET"), target: text("/\"\\"), requestID: text("id"), cacheStatus: text("a\n\u{1b}[0m")))
            batch.append(
                AccessEntry(),
                AccessTexts(method: text(""), target: text(""), requestID: text(""), cacheStatus: text("")))
            writer.requestsFinished(batch)
            writer.requestsFinished(HTTPAccessBatch(lost: 3))
            writer.close(within: .seconds(10))
            var buffer = [UInt8](repeating: 0, count: 4096)
            let count = read(output.number, &buffer, buffer.count)
            let lines = String(decoding: buffer.prefix(max(0, count)), as: UTF8.self)
            switch format {
            case .text:
                #expect(
                    lines == """
                        1994-11-06T08:49:37.042Z ::1 "GET /\\"\\\\" 200 4711 1002.003 id "a??[0m" cut
                        1970-01-01T00:00:00.000Z - "- -" 0 0 0.000 - "-"
                        - - "- -" 3 requests not logged

                        """)
            case .json:
                #expect(
                    lines == """
                        {"time":"1994-11-06T08:49:37.042Z","client":"::1","method":"GET","target":"/\\"\\\\","status":200,\
                        "bytes":4711,"duration_ms":1002.003,"request_id":"id","cache_status":"a??[0m","cut":true}
                        {"time":"1970-01-01T00:00:00.000Z","client":"","method":"","target":"","status":0,"bytes":0,\
                        "duration_ms":0.000,"request_id":"","cache_status":""}
                        {"lost":3}

                        """)
            }
        }
    }
}
