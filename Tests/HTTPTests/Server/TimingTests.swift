import TestSupport
import Testing

@testable import HTTP

/// Slow clients.
@Suite("Slow clients are timed out") struct TimingTests {
    /// The status of the response to a client that sends a byte every few milliseconds.
    private func statusWhileTrickling(_ client: RawClient) async throws -> Int {
        let isAnswered = Shared(false)
        async let trickling: Void = {
            while !isAnswered.value {
                try? await waitUntil("an answer before the next byte", within: .milliseconds(10)) { isAnswered.value }
                // The server may have answered and closed the connection in the meantime.
                guard (try? await onThread { try client.send("x") }) != nil else { return }
            }
        }()
        let status = try await onThread { try client.response().status }
        isAnswered.update { $0 = true }
        await trickling
        return status
    }

    @Test func incompleteHeadGets408() async throws {
        // Longer than a busy machine needs between the connection and the request.
        try await withServer(configure: { $0.headTimeout = .seconds(2) }) { _, port in
            try await onThread {
                let client = try RawClient(port: port)
                let answer = try client.request("GET / HTTP/1.1\r\nHost: h\r\nX: ")
                #expect(answer.status == 408)
                #expect(answer["Connection"] == "close")
                #expect(client.isClosed())
            }
        }
    }

    @Test func incompleteHeadOfHEADGets408WithoutABody() async throws {
        try await withServer(configure: { $0.headTimeout = .seconds(2) }) { _, port in
            try await onThread {
                let client = try RawClient(port: port)
                let answer = try client.request("HEAD / HTTP/1.1\r\nHost: h\r\nX: ", method: "HEAD")
                #expect(answer.status == 408)
                #expect(client.isClosed())
            }
        }
    }

    @Test func trickledBytesDoNotProlongAHead() async throws {
        try await withServer(configure: { $0.headTimeout = .milliseconds(800) }) { _, port in
            let client = try await onThread {
                let client = try RawClient(port: port)
                try client.send("GET / HTTP/1.1\r\nHost: h\r\nX: ")
                return client
            }
            let status = try await statusWhileTrickling(client)
            #expect(status == 408)
        }
    }

    @Test func silentConnectionIsClosedWithoutAResponse() async throws {
        try await withServer(configure: { $0.headTimeout = .milliseconds(200) }) { _, port in
            let isClosed = try await onThread { try RawClient(port: port).isClosed() }
            #expect(isClosed)
        }
    }

    @Test func idleConnectionIsClosedWithoutAResponse() async throws {
        try await withServer(configure: { $0.idleTimeout = .milliseconds(200) }) { _, port in
            try await onThread {
                let client = try RawClient(port: port)
                #expect(try client.request("GET /file HTTP/1.1\r\nHost: h\r\n\r\n").status == 200)
                #expect(client.isClosed())
            }
        }
    }

    @Test func emptyLineAfterARequestGetsNoResponse() async throws {
        let configure: (inout HTTPServerConfiguration) -> Void = {
            $0.headTimeout = .milliseconds(200)
            $0.idleTimeout = .milliseconds(600)
        }
        try await withServer(configure: configure) { _, port in
            try await onThread {
                let client = try RawClient(port: port)
                #expect(try client.request("GET /file HTTP/1.1\r\nHost: h\r\n\r\n\r\n").status == 200)
                #expect(client.isClosed())
            }
        }
    }

    @Test func clientThatReadsNothingIsReset() async throws {
        let content = [UInt8](repeating: 1, count: 20_000_000)
        let resource = HTTPResource(
            file: try temporaryFile(content), length: content.count, contentType: "video/mp4", entityTag: "\"x\"",
            lastModified: 0)
        let configure: (inout HTTPServerConfiguration) -> Void = { $0.bodyRateWindow = .milliseconds(300) }
        try await withServer(ClosureHandler { _ in .now(HTTPResponse(resource)) }, configure: configure) { server, port in
            let client = try await onThread {
                let client = try RawClient(port: port, receiveBuffer: 4096)
                try client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
                return client
            }
            try await waitUntil("the connection to be accepted and closed") {
                server.counters.acceptedConnections > 0 && server.counters.openConnections == 0
            }
            // An orderly end would let the kernel send the rest for minutes.
            let isReset = try await onThread { client.isReset() }
            #expect(isReset)
        }
    }

    @Test func bodyThatTakesTooLongGets408AtAnyRate() async throws {
        final class Sink: HTTPBodySink {
            let limit = 100_000
            func write(_ bytes: UnsafeRawBufferPointer) {}
            func finish() -> HTTPReply { .now(HTTPResponse(status: 204)) }
            func abort() {}
        }
        let configure: (inout HTTPServerConfiguration) -> Void = {
            $0.bodyTimeout = .milliseconds(500)
            $0.bodyRateWindow = .milliseconds(200)
            $0.minBodyRate = 1
        }
        try await withServer(ClosureHandler { _ in .receive(Sink()) }, configure: configure) { _, port in
            let client = try await onThread {
                let client = try RawClient(port: port)
                try client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n")
                return client
            }
            let status = try await statusWhileTrickling(client)
            #expect(status == 408)
        }
    }

    @Test func bodyThatStopsArrivingGets408() async throws {
        final class Sink: HTTPBodySink {
            let limit = 100
            func write(_ bytes: UnsafeRawBufferPointer) {}
            func finish() -> HTTPReply { .now(HTTPResponse(status: 204)) }
            func abort() {}
        }
        let configure: (inout HTTPServerConfiguration) -> Void = { $0.bodyRateWindow = .milliseconds(300) }
        try await withServer(ClosureHandler { _ in .receive(Sink()) }, configure: configure) { _, port in
            try await onThread {
                let client = try RawClient(port: port)
                let answer = try client.request("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nabc")
                #expect(answer.status == 408)
                #expect(client.isClosed())
            }
        }
    }
}
