import TestSupport
import Testing

@testable import HTTP

/// Responses that a task computes.
@Suite("Connections wait for their responses without a thread") struct ParkingTests {
    /// Answers once `gate` is open; counts in `events` what happened.
    private struct Gated: HTTPHandler {
        let gate: Shared<Bool>
        let events: Shared<[String]>

        func respond(to request: borrowing HTTPRequest) -> HTTPReply {
            if request.target == "/now" { return .now(HTTPResponse(status: 204)) }
            return .later {
                events.update { $0.append("started") }
                await gate.waitUntilOpen()
                events.update { $0.append(Task.isCancelled ? "cancelled" : "done") }
                return HTTPResponse(StubHandler.resource)
            }
        }
    }

    @Test func waitingConnectionDoesNotBlockOthers() async throws {
        let gate = Shared(false)
        let events = Shared<[String]>([])
        try await withServer(Gated(gate: gate, events: events), configure: { $0.threads = 1 }) { _, port in
            try await onThread {
                let waiting = try RawClient(port: port)
                try waiting.send("GET /later HTTP/1.1\r\nHost: h\r\nRange: bytes=0-9\r\n\r\n")
                let other = try RawClient(port: port)
                for _ in 0..<3 { #expect(try other.request("GET /now HTTP/1.1\r\nHost: h\r\n\r\n").status == 204) }
                gate.update { $0 = true }
                // The fields of the request apply to the response that the task returns.
                let answer = try waiting.response()
                #expect(answer.status == 206)
                #expect(answer.body == Array(StubHandler.content[..<10]))
                #expect(try waiting.request("GET /now HTTP/1.1\r\nHost: h\r\n\r\n").status == 204)
            }
            #expect(events.value == ["started", "done"])
        }
    }

    @Test func pipelinedRequestWaitsForTheResponseBefore() async throws {
        let gate = Shared(false)
        try await withServer(Gated(gate: gate, events: Shared([]))) { _, port in
            try await onThread {
                let client = try RawClient(port: port)
                try client.send("GET /later HTTP/1.1\r\nHost: h\r\n\r\nGET /now HTTP/1.1\r\nHost: h\r\n\r\n")
                gate.update { $0 = true }
                #expect(try client.response().status == 200)
                #expect(try client.response().status == 204)
            }
        }
    }

    @Test func clientThatLeavesCancelsTheTask() async throws {
        let events = Shared<[String]>([])
        try await withServer(Gated(gate: Shared(false), events: events)) { server, port in
            let client = try await onThread {
                let client = try RawClient(port: port)
                try client.send("GET /later HTTP/1.1\r\nHost: h\r\n\r\n")
                return Shared<RawClient?>(client)
            }
            try await events.wait { $0 == ["started"] }
            client.update { $0 = nil }
            try await events.wait { $0 == ["started", "cancelled"] }
            try await waitUntil("the connection to be closed") { server.counters.openConnections == 0 }
        }
    }

    @Test func stopCancelsTheTask() async throws {
        let events = Shared<[String]>([])
        try await withServer(Gated(gate: Shared(false), events: events)) { server, port in
            let client = try await onThread {
                let client = try RawClient(port: port)
                try client.send("GET /later HTTP/1.1\r\nHost: h\r\n\r\n")
                return Shared(client)
            }
            try await events.wait { $0 == ["started"] }
            await server.stop()
            try await events.wait { $0 == ["started", "cancelled"] }
            _ = client
        }
    }
}

extension RawClient: @unchecked Sendable {
    // A test passes a client from one thread to the next and never uses it on two at the same time.
}
