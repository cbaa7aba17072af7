import TestSupport
import Testing

@testable import HTTP

/// Requests that the engine refuses.
@Suite("Malformed requests are refused") struct RefusingTests {
    @Test(arguments: [
        ("GET / HTTP/1.1\r\n\r\n", 400), ("GET / HTTP/3.0\r\nHost: h\r\n\r\n", 505),
        ("CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n", 501), ("GET / HTTP/1.1\r\nHost: h\r\nExpect: x\r\n\r\n", 417),
        ("GET / HTTP/1.1\nHost: h\n\n", 400), ("GET /" + String(repeating: "a", count: 20_000), 414),
        ("GET / HTTP/1.1\r\nHost: h\r\nX: " + String(repeating: "a", count: 40_000), 431),
    ])
    func refusedRequestIsAnsweredAndTheConnectionClosed(request: String, status: Int) async throws {
        try await withServer { _, port in
            try await onThread {
                let client = try RawClient(port: port)
                let answer = try client.request(request)
                #expect(answer.status == status)
                #expect(answer["Connection"] == "close")
                #expect(answer["X-Request-Id"] != nil)
                #expect(client.isClosed())
            }
        }
    }

    @Test(arguments: [
        ("/" + String(repeating: "a", count: 20_000), "1.1", 414), ("/", "3.0", 505), ("/a b", "1.1", 400),
    ])
    func refusalOfHEADHasNoBody(target: String, version: String, status: Int) async throws {
        try await withServer { _, port in
            try await onThread {
                let client = try RawClient(port: port)
                let answer = try client.request("HEAD \(target) HTTP/\(version)\r\nHost: h\r\n\r\n", method: "HEAD")
                #expect(answer.status == status)
                #expect(client.isClosed())
            }
        }
    }

    @Test func bytesAfterARefusedRequestAreIgnored() async throws {
        let served = Shared(0)
        let handler = ClosureHandler { _ in
            served.update { $0 += 1 }
            return .now(HTTPResponse(status: 204))
        }
        try await withServer(handler) { _, port in
            let rest = try await onThread {
                let client = try RawClient(port: port)
                try client.send("GET /a b HTTP/1.1\r\nHost: h\r\n\r\nGET /file HTTP/1.1\r\nHost: h\r\n\r\n")
                _ = try client.response()
                return client.readToEnd()
            }
            #expect(rest.isEmpty)
        }
        #expect(served.value == 0)
    }

    @Test func serviceProvidesTheBodyOfARefusal() async throws {
        let handler = RefusingHandler { error in
            HTTPResponse(status: 200, contentType: "application/problem+json", text: "{\"code\":\"\(error.code)\"}")
        }
        try await withServer(handler) { _, port in
            let answer = try await onThread { try RawClient(port: port).request("GET / HTTP/1.1\r\n\r\n") }
            #expect(answer.status == 400)
            #expect(answer["Content-Type"] == "application/problem+json")
            #expect(answer.text == "{\"code\":\"bad_request\"}")
        }
    }

    @Test func refusalSurvivesBytesThatTheClientStillSends() async throws {
        try await withServer { _, port in
            try await onThread {
                let client = try RawClient(port: port)
                // More than the engine reads before it answers: closing at once would reset the connection.
                try client.send("GET /" + String(repeating: "a", count: 1 << 20))
                #expect(try client.response().status == 414)
                #expect(client.isClosed())
            }
        }
    }
}
