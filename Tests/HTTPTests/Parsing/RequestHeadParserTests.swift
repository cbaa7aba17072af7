import Testing

@testable import HTTP

@Suite("Heads of requests are parsed") struct RequestHeadParserTests {
    @Test func requestIsParsed() throws {
        let text = "GET /a?b=%20c HTTP/1.1\r\nHost: example.com:80\r\nX-Y:\t z \t\r\n\r\n"
        let head = try #require(try Parsed(text + "rest"))
        #expect(head.method == "GET")
        #expect(head.target == "/a?b=%20c")
        #expect(head.host == "example.com:80")
        #expect(head.length == text.utf8.count)
        #expect(head.framing == .none)
        #expect(head.keepsAlive)
    }

    @Test func everyPrefixOfARequestIsIncomplete() throws {
        let text = Array("\r\nPOST / HTTP/1.1\r\nHost: h\r\nContent-Length: 12\r\nX: y\r\n\r\n".utf8)
        for count in 0..<text.count {
            #expect(try Parsed(Array(text[..<count])) == nil, "after \(count) bytes")
        }
        #expect(try Parsed(text)?.framing == .sized(12))
    }

    @Test(arguments: [
        ("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", false),
        ("GET / HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, Close\r\n\r\n", false),
        ("GET / HTTP/1.9\r\nHost: h\r\n\r\n", true),
        ("GET / HTTP/1.0\r\n\r\n", false),
        ("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true),
        ("GET / HTTP/1.0\r\nConnection: keep-alive\r\nConnection: close\r\n\r\n", false),
    ])
    func connectionPersistsAsTheFieldsSay(text: String, keepsAlive: Bool) throws {
        #expect(try Parsed(text)?.keepsAlive == keepsAlive)
    }

    @Test(arguments: [
        ("GET http://other/x?y HTTP/1.1\r\nHost: h\r\n\r\n", "/x?y", "other"),
        ("GET HTTPS://other:8 HTTP/1.1\r\nHost: h\r\n\r\n", "/", "other:8"),
        ("OPTIONS http://other HTTP/1.1\r\nHost: h\r\n\r\n", "*", "other"),
        ("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", "*", "h"),
        ("GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", "/", "[::1]:80"),
    ])
    func absoluteTargetIsReduced(text: String, target: String, host: String) throws {
        let head = try #require(try Parsed(text))
        #expect(head.target == target)
        #expect(head.host == host)
    }

    @Test(arguments: [
        ("Content-Length: 5", BodyFraming.sized(5)),
        ("Content-Length: 0", .none),
        ("Transfer-Encoding: chunked", .chunked),
        ("transfer-encoding: CHUNKED", .chunked),
        ("Transfer_Encoding: chunked", .none),
    ])
    func framingFollowsFromTheFields(field: String, framing: BodyFraming) throws {
        #expect(try Parsed("POST / HTTP/1.1\r\nHost: h\r\n\(field)\r\n\r\n")?.framing == framing)
    }

    @Test func expectationNeedsABodyAndHTTP11() throws {
        #expect(
            try Parsed("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-Continue\r\nContent-Length: 1\r\n\r\n")?.expectsContinue
                == true)
        #expect(try Parsed("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n\r\n")?.expectsContinue == false)
        #expect(try Parsed("POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n")?.expectsContinue == false)
    }

    @Test(arguments: [
        ("get", "GET"), ("GeT", "GET"),
    ])
    func methodsAreCaseSensitive(given: String, standard: String) throws {
        #expect(try Parsed("\(given) / HTTP/1.1\r\nHost: h\r\n\r\n")?.method == given)
        #expect(given != standard)
    }

    @Test func everyPartIsBounded() throws {
        var limits = HeadLimits()
        limits.target = 10
        limits.head = 100
        limits.fields = 2
        #expect(throws: HTTPProtocolError.targetTooLong) {
            try Parsed("GET /" + String(repeating: "a", count: 10), limits: limits)
        }
        #expect(throws: HTTPProtocolError.headTooLarge) {
            try Parsed("GET / HTTP/1.1\r\nHost: h\r\nX: " + String(repeating: "a", count: 100), limits: limits)
        }
        #expect(throws: HTTPProtocolError.headTooLarge) {
            try Parsed("GET / HTTP/1.1\r\nHost: h\r\nA: b\r\nC: d\r\n\r\n", limits: limits)
        }
        #expect(throws: HTTPProtocolError.methodNotImplemented) {
            try Parsed(String(repeating: "A", count: 25), limits: limits)
        }
    }
}
