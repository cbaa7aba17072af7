import Glibc
import TestSupport
import Testing

@testable import HTTP

/// Clients that close their sending half, or their socket, while they wait for a response.
@Suite("Clients that close their sending half are told from those that leave") struct HalfCloseTests {
    /// Answers `/later` once `gate` is open; records in `events` what happened.
    private struct Gated: HTTPHandler {
        let gate = Shared(false)
        let events = Shared<[String]>([])

        func respond(to request: borrowing HTTPRequest) -> HTTPReply {
            if request.target == "/now" { return .now(HTTPResponse(status: 204)) }
            return .later { [gate, events] in
                events.update { $0.append("started") }
                await gate.waitUntilOpen()
                events.update { $0.append(Task.isCancelled ? "cancelled" : "done") }
                return HTTPResponse(StubHandler.resource)
            }
        }
    }

    private static let request = "GET /later HTTP/1.1\r\nHost: h\r\n\r\n"

    /// Whether the kernel knows the other socket of a connection.
    enum Peer: CaseIterable {
        case onThisMachine, elsewhere
    }

    private func withGate(
        _ peer: Peer, unixPath: String? = nil, _ body: (Gated, HTTPServer, Int) async throws -> Void
    ) async throws {
        let handler = Gated()
        let configure: (inout HTTPServerConfiguration) -> Void = {
            $0.threads = 1
            $0.unixPath = unixPath
            $0.looksUpLocalPeers = peer == .onThisMachine
        }
        try await withServer(handler, configure: configure) { server, port in try await body(handler, server, port) }
    }

    /// Returns after the loop has read everything that was sent before.
    private static func passTurn(_ port: Int) throws {
        #expect(try RawClient(port: port).request("GET /now HTTP/1.1\r\nHost: h\r\n\r\n").status == 204)
    }

    @Test(arguments: Peer.allCases) func halfClosedClientGetsItsResponse(peer: Peer) async throws {
        try await withGate(peer) { handler, _, port in
            try await onThread {
                let client = try RawClient(port: port)
                try client.send(Self.request)
                try handler.events.block { $0 == ["started"] }
                client.finishSending()
                try Self.passTurn(port)
                handler.gate.update { $0 = true }
                let answer = try client.response()
                #expect(answer.status == 200)
                // On a busy machine a probe may come before the gate opens.
                #expect(peer == .elsewhere || answer.interim.isEmpty)
                #expect(answer.body == StubHandler.content)
                #expect(client.isClosed())
            }
        }
    }

    @Test func halfClosedClientOnAUnixSocketGetsItsResponse() async throws {
        let path = "/tmp/gifreel-half-\(getpid())-\(UInt32.random(in: 0 ... .max))"
        try await withGate(.onThisMachine, unixPath: path) { handler, _, port in
            try await onThread {
                let client = try RawClient(path: path)
                try client.send(Self.request)
                try handler.events.block { $0 == ["started"] }
                client.finishSending()
                try Self.passTurn(port)
                handler.gate.update { $0 = true }
                #expect(try client.response().body == StubHandler.content)
            }
        }
    }

    @Test(arguments: Peer.allCases) func closedSocketCancelsTheTask(peer: Peer) async throws {
        try await withGate(peer) { handler, server, port in
            try await onThread {
                let client = try RawClient(port: port)
                try client.send(Self.request)
                try handler.events.block { $0 == ["started"] }
                try withExtendedLifetime(client) { try Self.passTurn(port) }
            }
            try await handler.events.wait { $0 == ["started", "cancelled"] }
        }
    }

    @Test(arguments: Peer.allCases) func socketClosedRightAfterTheRequestCancelsTheTask(peer: Peer) async throws {
        try await withGate(peer) { handler, server, port in
            try await onThread { try RawClient(port: port).send(Self.request) }
            try await handler.events.wait { $0.last == "cancelled" }
        }
    }

    @Test func clientOnAnotherMachineIsProbedWithAnInterimResponse() async throws {
        try await withGate(.elsewhere) { handler, _, port in
            try await onThread {
                let client = try RawClient(port: port)
                try client.send(Self.request)
                client.finishSending()
                let probe = "HTTP/1.1 100 Continue\r\n\r\n"
                #expect(try client.read(count: probe.utf8.count) == Array(probe.utf8))
                handler.gate.update { $0 = true }
                #expect(try client.response().body == StubHandler.content)
            }
        }
    }

    @Test func clientOfHTTP10GetsNoInterimResponse() async throws {
        try await withGate(.elsewhere) { handler, _, port in
            try await onThread {
                let client = try RawClient(port: port)
                try client.send("GET /later HTTP/1.0\r\n\r\n")
                client.finishSending()
                // A client of HTTP/1.1 that half-closes later is probed after this one would be.
                let other = try RawClient(port: port)
                try other.send(Self.request)
                other.finishSending()
                _ = try other.read(count: 25)
                handler.gate.update { $0 = true }
                let answer = try client.response()
                #expect(answer.interim.isEmpty)
                #expect(answer.body == StubHandler.content)
            }
        }
    }
}
