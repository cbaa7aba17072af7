import Testing

@testable import HTTP

/// Ending in order.
@Suite struct DrainingTests {
    @Test func whatIsUnderWayIsFinishedAndTheRestClosed() async throws {
        let gate = Shared(false)
        let handler = ClosureHandler { request in
            if request.target == "/now" { return .now(HTTPResponse(status: 204)) }
            return .later {
                await gate.waitUntilOpen()
                return HTTPResponse(StubHandler.resource)
            }
        }
        try await withServer(handler) { server, port in
            let (idle, waiting) = try await onThread {
                let idle = try RawClient(port: port)
                #expect(try idle.ask("GET /now HTTP/1.1\r\nHost: h\r\n\r\n").status == 204)
                let waiting = try RawClient(port: port)
                try waiting.send("GET /later HTTP/1.1\r\nHost: h\r\n\r\n")
                return (idle, waiting)
            }
            try await suspend(until: "both requests") { server.counters.requests == 2 }
            async let end: Void = server.drain()
            let isClosed = try await onThread { idle.isClosed() }
            #expect(isClosed)
            await #expect(throws: RawClient.Failure.self) { try await onThread { _ = try RawClient(port: port) } }
            gate.update { $0 = true }
            try await onThread {
                let answer = try waiting.answer()
                #expect(answer.body == StubHandler.content)
                #expect(answer["Connection"] == "close")
                #expect(waiting.isClosed())
            }
            await end
            #expect(server.counters.openConnections == 0)
        }
    }

    @Test func noRequestOfABusyClientIsLost() async throws {
        try await withServer { server, port in
            let count = Shared(0)
            async let asking: Void = onThread {
                let client = try RawClient(port: port)
                while true {
                    let answer = try client.ask("GET /file HTTP/1.1\r\nHost: h\r\n\r\n")
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

    @Test func whatTakesTooLongIsCut() async throws {
        let cancelled = Shared(false)
        let handler = ClosureHandler { _ in
            .later {
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
            try await suspend(until: "the request") { server.counters.requests == 1 }
            await server.drain()
            #expect(server.counters.openConnections == 0)
            let isClosed = try await onThread { client.isClosed() }
            #expect(isClosed)
            try await cancelled.wait { $0 }
        }
    }

    @Test func drainingTwiceOrBeforeTheStartIsHarmless() async throws {
        try await withServer { server, _ in
            async let first: Void = server.drain()
            async let second: Void = server.drain()
            _ = await (first, second)
        }
        await (try HTTPServer(configuration: HTTPServerConfiguration(), handler: StubHandler())).drain()
    }
}
