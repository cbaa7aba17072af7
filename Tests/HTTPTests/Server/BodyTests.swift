import Synchronization
import TestSupport
import Testing

@testable import HTTP

/// Bodies of requests over a socket.
@Suite("Bodies of requests reach their sinks") struct BodyTests {
    /// Collects a body; it refuses one that begins with `X`, and fails at one that begins with `F`.
    private final class Sink: HTTPBodySink {
        struct Full: Error {}

        let limit: Int
        private let events: Shared<[String]>
        private var bytes: [UInt8] = []

        init(limit: Int, events: Shared<[String]>) {
            self.limit = limit
            self.events = events
        }

        func write(_ piece: UnsafeRawBufferPointer) throws {
            bytes.append(contentsOf: piece)
            if bytes.first == UInt8(ascii: "X") {
                throw HTTPBodyRefusal(HTTPResponse(status: 415, contentType: "text/plain", text: "no X"))
            }
            if bytes.first == UInt8(ascii: "F") { throw Full() }
        }

        func finish() -> HTTPReply {
            events.update { $0.append("finish") }
            let text = String(decoding: bytes, as: UTF8.self)
            let response = HTTPResponse(status: 200, contentType: "text/plain", text: "got \(text.count) \(text.prefix(20))")
            return bytes.count % 2 == 0 ? .now(response) : .later { response }
        }

        func abort() { events.update { $0.append("abort") } }
    }

    private func withSink(
        limit: Int = 1 << 20, configure: (inout HTTPServerConfiguration) -> Void = { _ in },
        _ body: (Int, Shared<[String]>) async throws -> Void
    ) async throws {
        let events = Shared<[String]>([])
        let handler = ClosureHandler { request in
            request.method == .post
                ? .receive(Sink(limit: limit, events: events))
                : .now(HTTPResponse(status: 405, contentType: "text/plain", text: "no"))
        }
        try await withServer(handler, configure: configure) { _, port in try await body(port, events) }
    }

    @Test(arguments: [
        ("Content-Length: 4", "abcd", "got 4 abcd"),
        ("Content-Length: 5", "abcde", "got 5 abcde"),
        ("Transfer-Encoding: chunked", "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nT: u\r\n\r\n", "got 5 abcde"),
        ("Content-Length: 0", "", "got 0 "),
    ])
    func bodyReachesItsSink(field: String, body: String, text: String) async throws {
        try await withSink { port, events in
            try await onThread {
                let client = try RawClient(port: port)
                let head = "POST / HTTP/1.1\r\nHost: h\r\n\(field)\r\n\r\n"
                #expect(try client.request(head + body).text == text)
                // In single bytes, and followed by another request.
                for byte in Array((head + body).utf8) { try client.send([byte]) }
                try client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
                #expect(try client.response().text == text)
                #expect(try client.response().status == 405)
            }
            #expect(events.value == ["finish", "finish"])
        }
    }

    @Test func largeBodyArrivesComplete() async throws {
        try await withSink(limit: 8 << 20) { port, _ in
            let answer = try await onThread {
                let client = try RawClient(port: port)
                try client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: \(5 << 20)\r\n\r\n")
                try client.send([UInt8](repeating: UInt8(ascii: "a"), count: 5 << 20))
                return try client.response()
            }
            #expect(answer.text == "got \(5 << 20) aaaaaaaaaaaaaaaaaaaa")
        }
    }

    @Test func clientThatExpects100GetsIt() async throws {
        try await withSink(limit: 10) { port, _ in
            try await onThread {
                let client = try RawClient(port: port)
                let head = "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: "
                try client.send(head + "4\r\n\r\n")
                #expect(try client.read(count: 25) == Array("HTTP/1.1 100 Continue\r\n\r\n".utf8))
                #expect(try client.request("abcd").text == "got 4 abcd")
                let refused = try client.request(head + "11\r\n\r\n")
                #expect(refused.status == 413)
                #expect(refused.interim.isEmpty)
                #expect(client.isClosed())
            }
        }
    }

    @Test(arguments: ["Content-Length: 11\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\nb\r\nabcdefghijk\r\n"])
    func bodyOverTheLimitOfItsSinkIsRefused(rest: String) async throws {
        try await withSink(limit: 10) { port, events in
            try await onThread {
                let client = try RawClient(port: port)
                let answer = try client.request("POST / HTTP/1.1\r\nHost: h\r\n\(rest)")
                #expect(answer.status == 413)
                #expect(answer["Connection"] == "close")
            }
            #expect(events.value == ["abort"])
        }
    }

    @Test func limitOfTheServerAppliesToEverySink() async throws {
        try await withSink(configure: { $0.maxBodyBytes = 3 }) { port, _ in
            let answer = try await onThread {
                try RawClient(port: port).request("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nabcd")
            }
            #expect(answer.status == 413)
        }
    }

    @Test(arguments: [("Xabc", 415), ("Fabc", 500)])
    func sinkRefusesABodyBeforeItsEnd(body: String, status: Int) async throws {
        try await withSink { port, events in
            try await onThread {
                let client = try RawClient(port: port)
                let answer = try client.request("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 500000\r\n\r\n" + body)
                #expect(answer.status == status)
                #expect(answer["Connection"] == "close")
            }
            #expect(events.value == ["abort"])
        }
    }

    @Test func malformedBodyIsRefused() async throws {
        try await withSink { port, events in
            let (answer, rest) = try await onThread {
                let client = try RawClient(port: port)
                let answer = try client.request("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\nabc\n0\n\n")
                return (answer, client.readToEnd())
            }
            #expect(answer.status == 400)
            #expect(rest.isEmpty)
            #expect(events.value == ["abort"])
        }
    }

    @Test func clientThatLeavesAbortsTheSink() async throws {
        try await withSink { port, events in
            try await onThread {
                try RawClient(port: port).send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc")
            }
            try await events.wait { $0 == ["abort"] }
        }
    }

    @Test(arguments: ["Content-Length: 5\r\n\r\nhello", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"])
    func unwantedBodyIsDiscarded(rest: String) async throws {
        try await withSink { port, _ in
            try await onThread {
                let client = try RawClient(port: port)
                for size in [1, 1000] {
                    let request = Array("PUT / HTTP/1.1\r\nHost: h\r\n\(rest)GET / HTTP/1.1\r\nHost: h\r\n\r\n".utf8)
                    for start in stride(from: 0, to: request.count, by: size) {
                        try client.send(Array(request[start..<min(start + size, request.count)]))
                    }
                    #expect(try client.response().status == 405)
                    #expect(try client.response().status == 405)
                }
            }
        }
    }

    @Test(arguments: [
        "Content-Length: 10000000000\r\n\r\n", "Content-Length: 5\r\nExpect: 100-continue\r\n\r\n",
    ])
    func unwantedBodyOverTheLimitClosesTheConnection(rest: String) async throws {
        try await withSink { port, _ in
            try await onThread {
                let client = try RawClient(port: port)
                let answer = try client.request("PUT / HTTP/1.1\r\nHost: h\r\n\(rest)")
                #expect(answer.status == 405)
                #expect(answer["Connection"] == "close")
                #expect(client.isClosed())
            }
        }
    }

    @Test func endlessUnwantedBodyIsCutOff() async throws {
        try await withSink(configure: { $0.maxDiscardedBytes = 1000 }) { port, _ in
            try await onThread {
                let client = try RawClient(port: port)
                let chunk = "400\r\n" + String(repeating: "a", count: 1024) + "\r\n"
                try client.send("PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk)
                #expect(try client.response().status == 405)
                #expect(client.isClosed())
            }
        }
    }
}
