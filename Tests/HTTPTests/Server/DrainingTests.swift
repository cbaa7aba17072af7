import Testing

@testable import HTTP

/// The end of a server.
@Suite("A server drains") struct DrainingTests {
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

    @Test func drainingTwiceOrBeforeTheStartReturns() async throws {
        try await withServer { server, _ in
            async let first: Void = server.drain()
            async let second: Void = server.drain()
            _ = await (first, second)
        }
        await (try HTTPServer(configuration: HTTPServerConfiguration(), handler: StubHandler())).drain()
    }
}
