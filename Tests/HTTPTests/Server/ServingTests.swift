import TestSupport
import Testing

@testable import HTTP

/// Responses over a socket.
@Suite("Requests are answered") struct ServingTests {
    @Test func representationIsSentWithAllItsFields() async throws {
        try await withServer { _, port in
            let answer = try await onThread { try RawClient(port: port).request("GET /file HTTP/1.1\r\nHost: h\r\n\r\n") }
            #expect(answer.status == 200)
            #expect(answer.body == StubHandler.content)
            #expect(answer["Content-Type"] == "video/mp4")
            #expect(answer["Content-Length"] == "5000")
            #expect(answer["ETag"] == StubHandler.entityTag)
            #expect(answer["Last-Modified"] == HTTPDate.format(StubHandler.lastModified))
            #expect(answer["Accept-Ranges"] == "bytes")
            #expect(answer["Cache-Control"] == "public, max-age=60")
            #expect(answer["Cache-Status"] == "test; hit")
            #expect(answer["Connection"] == nil)
            #expect(answer["Date"].flatMap { HTTPDate.parse($0, now: 0) } != nil)
            #expect(answer["X-Request-Id"]?.count == 16)
        }
    }

    @Test func connectionServesEveryKindOfRequest() async throws {
        try await withServer { server, port in
            try await onThread {
                let client = try RawClient(port: port)
                let head = try client.request("HEAD /file HTTP/1.1\r\nHost: h\r\nRange: bytes=0-1\r\n\r\n", method: "HEAD")
                #expect(head.status == 200)
                #expect(head["Content-Length"] == "5000")
                let part = try client.request("GET /file HTTP/1.1\r\nHost: h\r\nRange: bytes=10-19\r\n\r\n")
                #expect(part.status == 206)
                #expect(part["Content-Range"] == "bytes 10-19/5000")
                #expect(part["Cache-Control"] == "public, max-age=60")
                #expect(part.body == Array(StubHandler.content[10..<20]))
                let same = try client.request("GET /file HTTP/1.1\r\nHost: h\r\nIf-None-Match: \"v1\"\r\n\r\n")
                #expect(same.status == 304)
                #expect(same["ETag"] == "\"v1\"")
                #expect(same["Cache-Status"] == "test; hit")
                #expect(same["Content-Length"] == nil)
                let failed = try client.request("GET /file HTTP/1.1\r\nHost: h\r\nIf-Match: \"v2\"\r\n\r\n")
                #expect(failed.status == 412)
                let beyond = try client.request("GET /file HTTP/1.1\r\nHost: h\r\nRange: bytes=5000-\r\n\r\n")
                #expect(beyond.status == 416)
                #expect(beyond["Content-Range"] == "bytes */5000")
                let missing = try client.request("GET /none HTTP/1.1\r\nHost: h\r\n\r\n")
                #expect(missing.status == 404)
                #expect(missing.text == "nothing here")
            }
            #expect(server.counters.acceptedConnections == 1)
        }
    }

    @Test func severalRangesAreSentAsParts() async throws {
        try await withServer { _, port in
            let (answer, next) = try await onThread {
                let client = try RawClient(port: port)
                let answer = try client.request("GET /file HTTP/1.1\r\nHost: h\r\nRange: bytes=100-109,0-4,-3\r\n\r\n")
                return (answer, try client.request("GET /none HTTP/1.1\r\nHost: h\r\n\r\n"))
            }
            #expect(answer.status == 206)
            #expect(answer["Content-Range"] == nil)
            let type = try #require(answer["Content-Type"])
            #expect(type.hasPrefix("multipart/byteranges; boundary="))
            let boundary = type.dropFirst("multipart/byteranges; boundary=".count)
            var expected: [UInt8] = []
            for (index, range) in [100..<110, 0..<5, 4997..<5000].enumerated() {
                expected += Array("\(index == 0 ? "" : "\r\n")--\(boundary)\r\nContent-Type: video/mp4\r\n".utf8)
                expected += Array("Content-Range: bytes \(range.lowerBound)-\(range.upperBound - 1)/5000\r\n\r\n".utf8)
                expected += StubHandler.content[range]
            }
            expected += Array("\r\n--\(boundary)--\r\n".utf8)
            #expect(answer.body == expected)
            #expect(next.status == 404)
        }
    }

    @Test func pipelinedRequestsAreAnsweredInOrder() async throws {
        try await withServer { _, port in
            try await onThread {
                let client = try RawClient(port: port)
                let requests = (0..<200).map { "GET /file HTTP/1.1\r\nHost: h\r\nRange: bytes=\($0)-\($0)\r\n\r\n" }
                try client.send(requests.joined())
                for index in 0..<200 {
                    #expect(try client.response().body == [StubHandler.content[index]])
                }
            }
        }
    }

    @Test func requestMayArriveInSingleBytes() async throws {
        try await withServer { _, port in
            let answer = try await onThread {
                let client = try RawClient(port: port)
                for byte in Array("GET /none HTTP/1.1\r\nHost: h\r\n\r\n".utf8) { try client.send([byte]) }
                return try client.response()
            }
            #expect(answer.status == 404)
        }
    }

    @Test(arguments: [
        "GET /file HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", "GET /file HTTP/1.0\r\n\r\n",
    ])
    func connectionClosesIfTheClientAsksForIt(request: String) async throws {
        try await withServer { _, port in
            try await onThread {
                let client = try RawClient(port: port)
                let answer = try client.request(request)
                #expect(answer["Connection"] == "close")
                #expect(answer.body == StubHandler.content)
                #expect(client.isClosed())
            }
        }
    }

    @Test func http10ConnectionIsKeptIfTheClientAsksForIt() async throws {
        try await withServer { _, port in
            try await onThread {
                let client = try RawClient(port: port)
                for _ in 0..<2 {
                    let answer = try client.request("GET /file HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
                    #expect(answer["Connection"] == "keep-alive")
                }
            }
        }
    }

    @Test func clientThatHasHalfClosedIsAnswered() async throws {
        try await withServer { _, port in
            try await onThread {
                let client = try RawClient(port: port)
                try client.send("GET /file HTTP/1.1\r\nHost: h\r\n\r\n")
                client.finishSending()
                #expect(try client.response().body == StubHandler.content)
                #expect(client.isClosed())
            }
        }
    }

    @Test func fileLargerThanAllBuffersIsSent() async throws {
        let content = (0..<9_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 7) }
        let resource = HTTPResource(
            file: try temporaryFile(content), length: content.count, contentType: "video/mp4", entityTag: "\"x\"",
            lastModified: 0)
        try await withServer(ClosureHandler { _ in .now(HTTPResponse(resource)) }) { _, port in
            try await onThread {
                let client = try RawClient(port: port, receiveBuffer: 4096)
                #expect(try client.request("GET / HTTP/1.1\r\nHost: h\r\n\r\n").body == content)
                let part = try client.request("GET / HTTP/1.1\r\nHost: h\r\nRange: bytes=1000000-8000000\r\n\r\n")
                #expect(part.body == Array(content[1_000_000...8_000_000]))
                let parts = try client.request("GET / HTTP/1.1\r\nHost: h\r\nRange: bytes=0-2999999,4000000-8999999\r\n\r\n")
                #expect(parts.status == 206)
                #expect(parts.body.count > 8_000_000)
            }
        }
    }

    @Test func fileShorterThanDeclaredClosesTheConnection() async throws {
        let resource = HTTPResource(
            file: try temporaryFile([1, 2, 3]), length: 100_000, contentType: "video/mp4", entityTag: "\"x\"",
            lastModified: 0)
        try await withServer(ClosureHandler { _ in .now(HTTPResponse(resource)) }) { _, port in
            try await onThread {
                let client = try RawClient(port: port)
                try client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
                #expect(throws: RawClient.Failure.self) { try client.response() }
            }
        }
    }

    @Test func usableRequestIDOfTheClientIsKept() async throws {
        try await withServer { _, port in
            try await onThread {
                let client = try RawClient(port: port)
                let given = try client.request("GET /echo HTTP/1.1\r\nHost: h\r\nX-Request-Id: ab-12.x_y:z\r\n\r\n")
                #expect(given["X-Request-Id"] == "ab-12.x_y:z")
                #expect(given.text.hasSuffix(" ab-12.x_y:z"))
                for bad in ["a b", "<x>", String(repeating: "x", count: 65), ""] {
                    let replaced = try client.request("GET /echo HTTP/1.1\r\nHost: h\r\nX-Request-Id: \(bad)\r\n\r\n")
                    let id = try #require(replaced["X-Request-Id"])
                    #expect(id.count == 16 && id != bad)
                    #expect(replaced.text.hasSuffix(id))
                }
            }
        }
    }

    @Test func handlerReadsTheRequest() async throws {
        let handler = ClosureHandler { request in
            var values: [String] = []
            request.forEachValue(of: "X-A") { values.append(String(decoding: $0, as: UTF8.self)) }
            let lines = [
                "\(request.method) \(request.target)", request.header("x-a") ?? "-", "\(values)",
                request.header("x-none") ?? "-",
            ]
            return .now(HTTPResponse(status: 200, contentType: "text/plain", text: lines.joined(separator: "|")))
        }
        try await withServer(handler) { _, port in
            let answer = try await onThread {
                try RawClient(port: port).request(
                    "PURGE /%41?b#".dropLast() + " HTTP/1.1\r\nHost: h\r\nX-A: 1\r\nx-a: 2\r\n\r\n")
            }
            #expect(answer.text == "PURGE /%41?b|1|[\"1\", \"2\"]|-")
        }
    }

    @Test func forwardedFieldsOfTrustedProxiesAloneCount() async throws {
        let request = "GET /echo HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 1.2.3.4\r\nX-Request-Id: i\r\n\r\n"
        try await withServer { _, port in
            let text = try await onThread { try RawClient(port: port).request(request).text }
            #expect(text == "GET h 127.0.0.1 i")
        }
        let proxies = try #require(ClientList(["127.0.0.0/8"]))
        try await withServer(configure: { $0.trustedProxies = proxies }) { _, port in
            let text = try await onThread { try RawClient(port: port).request(request).text }
            #expect(text == "GET h 1.2.3.4 i")
        }
    }
}
