import Glibc
import SystemIO
import TestSupport
import Testing

@testable import HTTP

@Suite("A server drains") struct DrainingTests {
    private static var socketPath: String { "/tmp/http-tests-\(getpid())-\(UInt32.random(in: .min ... .max)).sock" }

    @Test func requestsInProgressAreAnsweredAndIdleConnectionsClosed() async throws {
        let gate = Shared(false)
        let requests = Shared(0)
        let handler = ClosureHandler { request in
            requests.update { $0 += 1 }
            if request.target == "/now" { return .now(HTTPResponse(status: 204)) }
            return .later {
                await gate.waitUntilOpen()
                return HTTPResponse(StubHandler.resource)
            }
        }
        try await withServer(handler) { server, port in
            let (idle, waiting) = try await onThread {
                let idle = try RawClient(port: port)
                #expect(try idle.request("GET /now HTTP/1.1\r\nHost: h\r\n\r\n").status == 204)
                let waiting = try RawClient(port: port)
                try waiting.send("GET /later HTTP/1.1\r\nHost: h\r\n\r\n")
                return (idle, waiting)
            }
            try await requests.wait { $0 == 2 }
            async let end: Void = server.drain()
            let isClosed = try await onThread { idle.isClosed() }
            #expect(isClosed)
            await #expect(throws: RawClient.Failure.self) { try await onThread { _ = try RawClient(port: port) } }
            gate.update { $0 = true }
            try await onThread {
                let answer = try waiting.response()
                #expect(answer.body == StubHandler.content)
                #expect(answer["Connection"] == "close")
                #expect(waiting.isClosed())
            }
            await end
            #expect(server.counters.openConnections == 0)
        }
    }

    @Test func requestsOfABusyClientAreAllAnswered() async throws {
        try await withServer { server, port in
            let count = Shared(0)
            async let asking: Void = onThread {
                let client = try RawClient(port: port)
                while true {
                    let answer = try client.request("GET /file HTTP/1.1\r\nHost: h\r\n\r\n")
                    #expect(answer.body == StubHandler.content)
                    count.update { $0 += 1 }
                    if answer["Connection"] == "close" { return }
                }
            }
            try await count.wait { $0 > 10 }
            await server.drain()
            try await asking
        }
    }

    @Test func requestsThatExceedTheDrainTimeoutAreCancelled() async throws {
        let cancelled = Shared(false)
        let requested = Shared(false)
        let handler = ClosureHandler { _ in
            .later {
                requested.update { $0 = true }
                await Shared(false).waitUntilOpen()
                cancelled.update { $0 = true }
                return HTTPResponse(status: 204)
            }
        }
        try await withServer(handler, configure: { $0.drainTimeout = .milliseconds(200) }) { server, port in
            let client = try await onThread {
                let client = try RawClient(port: port)
                try client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
                return client
            }
            try await requested.wait { $0 }
            await server.drain()
            #expect(server.counters.openConnections == 0)
            let isClosed = try await onThread { client.isClosed() }
            #expect(isClosed)
            try await cancelled.wait { $0 }
        }
    }

    @Test func clientWhoseHandshakeHasBegunIsServed() async throws {
        let path = Self.socketPath
        let configure: (inout HTTPServerConfiguration) -> Void = {
            $0.unixPath = path
            $0.threads = 1
            $0.handshakeTimeout = .seconds(20)
        }
        try await withServer(configure: configure) { server, port in
            let slow = try UnfinishedHandshake(port: port)
            async let end: Void = server.drain()
            // The server refuses clients of the port before those of the path.
            try await waitUntil("the socket's path to be removed") { access(path, F_OK) != 0 }
            async let refused = onThread { try? RawClient(port: port) }
            try await onThread {
                let answer = try slow.finish().request("GET /file HTTP/1.1\r\nHost: h\r\n\r\n")
                #expect(answer.body == StubHandler.content)
                #expect(answer["Connection"] == "close")
            }
            let isRefused = try await refused == nil
            #expect(isRefused)
            await end
        }
    }

    @Test func clientThatNeverFinishesItsHandshakeIsGivenUp() async throws {
        let configure: (inout HTTPServerConfiguration) -> Void = { $0.handshakeTimeout = .milliseconds(100) }
        try await withServer(configure: configure) { server, port in
            let silent = try UnfinishedHandshake(port: port)
            await server.drain()
            #expect(server.counters.acceptedConnections == 0)
            withExtendedLifetime(silent) {}
        }
    }

    @Test func clientsOfAUnixSocketThatHaveConnectedAreServed() async throws {
        let path = Self.socketPath
        let gate = Shared(false)
        let handler = ClosureHandler { _ in
            .later {
                await gate.waitUntilOpen()
                return HTTPResponse(status: 204)
            }
        }
        // The second client waits in the backlog, because the limit is reached.
        let configure: (inout HTTPServerConfiguration) -> Void = {
            $0.unixPath = path
            $0.threads = 1
            $0.maxConnections = 1
            $0.handshakeTimeout = .seconds(20)
        }
        try await withServer(handler, configure: configure) { server, _ in
            let clients = try await onThread {
                let clients = [try RawClient(path: path), try RawClient(path: path)]
                for client in clients { try client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n") }
                return clients
            }
            try await waitUntil("the first client to be accepted") { server.counters.acceptedConnections == 1 }
            async let end: Void = server.drain()
            try await waitUntil("the socket's path to be removed") { access(path, F_OK) != 0 }
            gate.update { $0 = true }
            let statuses = try await onThread { try clients.map { try $0.response().status } }
            #expect(statuses == [204, 204])
            await end
        }
    }

    @Test func drainingTwiceOrBeforeTheStartReturns() async throws {
        try await withServer { server, _ in
            async let first: Void = server.drain()
            async let second: Void = server.drain()
            _ = await (first, second)
        }
        await HTTPServer(configuration: HTTPServerConfiguration(), handler: StubHandler()).drain()
    }
}
