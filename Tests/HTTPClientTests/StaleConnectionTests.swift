import TestSupport
import Testing

@testable import HTTPClient

@Suite("A connection that is closed or old is replaced", .timeLimit(.minutes(10))) struct StaleConnectionTests {
    private final class Call: HTTPCall {
        var timeout: Duration { .seconds(60) }
        func nextRequest() -> ClientRequest? { nil }
        func receive(_ head: HTTPHead) -> Bool { true }
        func receive(_ bytes: UnsafeRawBufferPointer) -> Bool { true }
        func continues(after result: Result<Void, HTTPError>) -> Bool { false }
        func end(_ error: HTTPError?) {}
    }

    @Test(arguments: [true, false]) func aConnectionThatEndsBeforeTheResponseIsReplacedOnce(isFresh: Bool) throws {
        try #require(CurlLibrary.prepare())
        let request = ClientRequest("GET", "https://127.0.0.1/a.gif", timeout: .seconds(60))
        let transfer = try HTTPTransfer(
            request, for: Call(), timeLeft: .seconds(60), sockets: SocketTable(), onFreshConnection: isFresh)
        #expect(transfer.isStale(.failure(.interrupted(cause: "the stream was not closed cleanly"))) == !isFresh)
        #expect(!transfer.isStale(.failure(.unreachable(cause: "refused"))))
        #expect(!transfer.isStale(.success(())))
    }

    @Test func aConnectionIsReplacedAfterItsLifetime() async throws {
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok([1]) }])
        defer { origin.stop() }
        let client = try HTTPClient(name: "test", limits: .init(running: 1))
        defer { client.stop() }
        var request = ClientRequest("GET", origin.url("/a.gif"), timeout: .seconds(60))
        request.connectionLifetime = .seconds(1)
        try await waitUntil("a second connection") { [request] in
            _ = try await client.send(request)
            return origin.connections == 2
        }
        #expect(origin.count("/a.gif") > 2)
    }
}
