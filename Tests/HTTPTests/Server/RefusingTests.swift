import Testing

@testable import HTTP

/// What the engine refuses by itself.
@Suite struct RefusingTests {
    @Test(arguments: [
        ("GET / HTTP/1.1\r\n\r\n", 400), ("GET / HTTP/3.0\r\nHost: h\r\n\r\n", 505),
        ("CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n", 501), ("GET / HTTP/1.1\r\nHost: h\r\nExpect: x\r\n\r\n", 417),
        ("GET / HTTP/1.1\nHost: h\n\n", 400), ("GET /" + String(repeating: "a", count: 20_000), 414),
        ("GET / HTTP/1.1\r\nHost: h\r\nX: " + String(repeating: "a", count: 40_000), 431),
    ])
    func answersAndCloses(request: String, status: Int) async throws {
        try await withServer { _, port in
            try await onThread {
                let client = try RawClient(port: port)
                let answer = try client.ask(request)
                #expect(answer.status == status)
                #expect(answer["Connection"] == "close")
                #expect(answer["X-Request-Id"] != nil)
                #expect(client.isClosed())
            }
        }
    }

    @Test func answersNothingThatFollowsABrokenRequest() async throws {
        try await withServer { server, port in
            let rest = try await onThread {
                let client = try RawClient(port: port)
                try client.send("GET /a b HTTP/1.1\r\nHost: h\r\n\r\nGET /file HTTP/1.1\r\nHost: h\r\n\r\n")
                _ = try client.answer()
                return client.readToEnd()
            }
            #expect(rest.isEmpty)
            #expect(server.counters.requests == 1)
        }
    }

    @Test func asksTheServiceForTheBody() async throws {
        let configure: (inout HTTPServerConfiguration) -> Void = { configuration in
            configuration.errorResponse = { error in
                HTTPResponse(status: 200, contentType: "application/problem+json", text: "{\"code\":\"\(error.code)\"}")
            }
        }
        try await withServer(configure: configure) { _, port in
            let answer = try await onThread { try RawClient(port: port).ask("GET / HTTP/1.1\r\n\r\n") }
            #expect(answer.status == 400)
            #expect(answer["Content-Type"] == "application/problem+json")
            #expect(answer.text == "{\"code\":\"bad_request\"}")
        }
    }

    @Test func theAnswerSurvivesWhatTheClientStillSends() async throws {
        try await withServer { _, port in
            try await onThread {
                let client = try RawClient(port: port)
                // Far more than the engine reads before it answers: closing at once would reset the connection.
                try client.send("GET /" + String(repeating: "a", count: 1 << 20))
                #expect(try client.answer().status == 414)
                #expect(client.isClosed())
            }
        }
    }
}
