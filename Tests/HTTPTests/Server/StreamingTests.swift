import TestSupport
import Testing

@testable import HTTP

/// Bodies that a task produces piece by piece.
@Suite("Bodies are streamed") struct StreamingTests {
    private func stream(
        length: Int? = nil, _ produce: @escaping @Sendable (HTTPBodyWriter) async throws -> Void
    ) -> ClosureHandler {
        ClosureHandler { _ in
            .now(HTTPResponse(status: 200, headers: ["Content-Type": "text/plain"], body: .stream(length: length, produce)))
        }
    }

    private static let request = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"

    @Test func streamedBodyIsSentInChunks() async throws {
        let handler = stream { writer in
            for index in 0..<50 { try await writer.write(Array("piece \(index);".utf8)) }
            try await writer.write([])
        }
        let expected = (0..<50).map { "piece \($0);" }.joined()
        try await withServer(handler) { _, port in
            try await onThread {
                let client = try RawClient(port: port)
                for _ in 0..<2 {
                    let answer = try client.request(Self.request)
                    #expect(answer["Transfer-Encoding"] == "chunked")
                    #expect(answer["Content-Length"] == nil)
                    #expect(answer.text == expected)
                }
            }
        }
    }

    @Test func streamedBodyToHTTP10EndsWithTheConnection() async throws {
        let handler = stream { writer in try await writer.write(Array("abc".utf8)) }
        try await withServer(handler) { _, port in
            let answer = try await onThread {
                try RawClient(port: port).request("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            }
            #expect(answer["Transfer-Encoding"] == nil)
            #expect(answer["Connection"] == "close")
            #expect(answer.text == "abc")
        }
    }

    @Test func aBodyOfKnownLengthIsSentAsItIsAndTheConnectionStaysOpen() async throws {
        let handler = stream(length: 6) { writer in
            for piece in ["abc", "def"] { try await writer.write(Array(piece.utf8)) }
        }
        try await withServer(handler) { _, port in
            try await onThread {
                let client = try RawClient(port: port)
                for _ in 0..<2 {
                    let answer = try client.request(Self.request)
                    #expect(answer["Content-Length"] == "6" && answer["Transfer-Encoding"] == nil)
                    #expect(answer.text == "abcdef")
                }
                let old = try RawClient(port: port).request("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
                #expect(old["Connection"] == "keep-alive" && old.text == "abcdef")
                let head = try RawClient(port: port).request("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n", method: "HEAD")
                #expect(head["Content-Length"] == "6")
            }
        }
    }

    @Test(arguments: ["abc", "abcdefg"]) func aBodyOfAnotherLengthThanDeclaredEndsTheConnection(_ body: String) async throws {
        let handler = stream(length: 6) { writer in
            for byte in body.utf8 { try await writer.write([byte]) }
        }
        try await withServer(handler) { _, port in
            let rest = try await onThread {
                let client = try RawClient(port: port)
                try client.send(Self.request)
                return String(decoding: client.readToEnd(), as: UTF8.self)
            }
            #expect(rest.hasSuffix("\r\n\r\n\(body.prefix(6))"))
        }
    }

    @Test(arguments: [6, 7]) func aBodyIsCompleteWithItsLastByteAlthoughItsProducerGoesOn(_ length: Int) async throws {
        let handler = stream(length: length) { writer in
            try await writer.write(Array("abcdef".utf8))
            await Shared(false).waitUntilOpen()
        }
        let lines = Shared<[String]>([])
        try await withServer(handler, observer: AccessCollector(lines: lines)) { _, port in
            try await onThread {
                let client = try RawClient(port: port)
                try client.send(Self.request)
                var answer: [UInt8] = []
                while !answer.suffix(10).elementsEqual("\r\n\r\nabcdef".utf8) { answer += try client.read(count: 1) }
            }
            try await lines.wait { $0 == ["127.0.0.1 GET / 200 6 \(length == 6) []"] }
        }
    }

    @Test func anIncompleteBodyToHTTP10IsReset() async throws {
        struct Broken: Error {}
        let handler = stream { writer in
            try await writer.write(Array("abc".utf8))
            throw Broken()
        }
        try await withServer(handler) { _, port in
            let error = try await onThread {
                let client = try RawClient(port: port)
                try client.send("GET / HTTP/1.0\r\n\r\n")
                return client.endsWithReset()
            }
            #expect(error)
        }
    }

    @Test func aBodyToHTTP10ThatAStopEndsIsReset() async throws {
        let handler = stream { writer in
            try await writer.write(Array("abc".utf8))
            await Shared(false).waitUntilOpen()
        }
        try await withServer(handler) { server, port in
            let client = try await onThread {
                let client = try RawClient(port: port)
                try client.send("GET / HTTP/1.0\r\n\r\n")
                var answer: [UInt8] = []
                while !answer.suffix(7).elementsEqual("\r\n\r\nabc".utf8) { answer += try client.read(count: 1) }
                return client
            }
            await server.stop()
            let isReset = try await onThread { client.endsWithReset() }
            #expect(isReset)
        }
    }

    @Test func aBodyThatStartsWhileTheSocketIsFullHasADeadline() throws {
        let driver = ConnectionDriver(
            settings: loopSettings(handler: stream { _ in }), mailbox: try LoopMailbox(), connections: ConnectionTable(),
            clock: LoopClock(), log: nil)
        let pair = try SocketPair()
        try pair.send(Self.request.utf8)
        pair.connection.isWritable = false
        driver.start(pair.connection)
        #expect(pair.connection.phase == .sending)
        #expect(pair.connection.deadline != .max)
        driver.close(pair.connection)
    }

    @Test func headRequestStartsNoProducer() async throws {
        let started = Shared(false)
        let handler = stream { _ in started.update { $0 = true } }
        try await withServer(handler) { _, port in
            try await onThread {
                let client = try RawClient(port: port)
                for _ in 0..<2 {
                    #expect(try client.request("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n", method: "HEAD").status == 200)
                }
            }
        }
        #expect(!started.value)
    }

    @Test func failingProducerClosesTheConnection() async throws {
        struct Broken: Error {}
        let handler = stream { writer in
            try await writer.write(Array("abc".utf8))
            throw Broken()
        }
        try await withServer(handler) { _, port in
            let rest = try await onThread {
                let client = try RawClient(port: port)
                try client.send(Self.request)
                return String(decoding: client.readToEnd(), as: UTF8.self)
            }
            #expect(rest.hasSuffix("3\r\nabc\r\n"))
        }
    }

    @Test func slowClientSlowsTheProducerDown() async throws {
        let written = Shared(0)
        let piece = [UInt8](repeating: 7, count: 256 * 1024)
        let handler = stream { writer in
            for _ in 0..<200 {
                try await writer.write(piece)
                written.update { $0 += 1 }
            }
        }
        try await withServer(handler) { _, port in
            let body = try await onThread {
                let client = try RawClient(port: port, receiveBuffer: 4096)
                try client.send(Self.request)
                // The kernel's buffers hold a few megabytes; of 50 the rest must wait until they are read.
                _ = try client.read(count: 1000)
                #expect(written.value < 100)
                return client
            }
            let rest = try await onThread {
                try body.read(count: 200 * piece.count)
            }
            #expect(rest.count == 200 * piece.count)
            try await written.wait { $0 == 200 }
        }
    }

    @Test func clientThatLeavesEndsTheProducer() async throws {
        let ended = Shared("")
        let handler = stream { writer in
            do {
                while true { try await writer.write([1, 2, 3]) }
            } catch {
                ended.update { $0 = "\(type(of: error)) \(Task.isCancelled)" }
                throw error
            }
        }
        try await withServer(handler) { _, port in
            _ = try await onThread {
                let client = try RawClient(port: port)
                try client.send(Self.request)
                return try client.read(count: 200).count
            }
            try await ended.wait { $0 == "HTTPClientLeft true" }
        }
    }
}
