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
        ("Expect: 100-continue, 100-Continue", true), ("Expect: 100-continue\r\nExpect: ,100-continue", true),
        ("Expect:", false), ("Expect: 100-continue\r\nExpect: x", nil), ("Expect: 100-continue, x=\"100-continue\"", nil),
    ])
    func everyExpectationCounts(_ fields: String, _ expected: Bool?) throws {
        let text = "POST / HTTP/1.1\r\nHost: h\r\n\(fields)\r\nContent-Length: 1\r\n\r\n"
        if let expected {
            #expect(try Parsed(text)?.expectsContinue == expected)
        } else {
            #expect(throws: HTTPProtocolError.expectationFailed) { try Parsed(text) }
        }
    }

    @Test(arguments: [
        ("get", "GET"), ("GeT", "GET"),
    ])
    func methodsAreCaseSensitive(given: String, standard: String) throws {
        #expect(try Parsed("\(given) / HTTP/1.1\r\nHost: h\r\n\r\n")?.method == given)
        #expect(given != standard)
    }

    /// Browsers send a typed `100%.gif` unchanged. The handler decides what it means.
    @Test(arguments: ["/%zz", "/%2", "/a%", "/mp4/http://h/100%.gif"])
    func aPercentSignWithoutDigitsIsLeftToTheHandler(_ target: String) throws {
        #expect(try Parsed("GET \(target) HTTP/1.1\r\nHost: h\r\n\r\n")?.target == target)
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

    @Test func aHeadThatArrivesWholeIsBoundedByItsEnd() throws {
        let head = "GET / HTTP/1.1\r\nHost: h\r\nX: \(String(repeating: "a", count: 100))\r\n\r\n"
        var limits = HeadLimits()
        limits.head = head.utf8.count
        #expect(try Parsed(head + "GET / HTTP/1.1\r\n", limits: limits)?.length == limits.head)
        limits.head -= 1
        #expect(throws: HTTPProtocolError.headTooLarge) { try Parsed(head, limits: limits) }
    }
}

@Suite("Known fields are recognized by name") struct KnownFieldTests {
    private static let names: [(String, KnownField)] = [
        ("host", .host), ("range", .range), ("expect", .expect), ("connection", .connection), ("forwarded", .forwarded),
        ("if-match", .ifMatch), ("if-none-match", .ifNoneMatch), ("if-modified-since", .ifModifiedSince),
        ("if-unmodified-since", .ifUnmodifiedSince), ("if-range", .ifRange), ("content-length", .contentLength),
        ("transfer-encoding", .transferEncoding), ("x-request-id", .requestID), ("x-forwarded-for", .forwardedFor),
        ("x-forwarded-proto", .forwardedProto), ("x-real-ip", .realIP),
    ]

    private func field(_ name: [UInt8]) -> KnownField { name.withUnsafeBytes { KnownField($0) } }

    @Test(arguments: names)
    func fieldNameIsRecognizedInAnyCase(name: String, known: KnownField) {
        #expect(field(Array(name.utf8)) == known)
        #expect(field(Array(name.uppercased().utf8)) == known)
        let mixed = name.utf8.enumerated().map { $0 % 2 == 0 ? $1 : Array(String(UnicodeScalar($1)).uppercased().utf8)[0] }
        #expect(field(mixed) == known)
    }

    /// Each byte of each name replaced by each character that a name may have.
    @Test(arguments: names)
    func otherNamesAreNotRecognized(name: String, known: KnownField) {
        for index in name.utf8.indices.map({ name.utf8.distance(from: name.utf8.startIndex, to: $0) }) {
            for byte in (UInt8.min...UInt8.max) where byte.isToken {
                var other = Array(name.utf8)
                other[index] = byte
                #expect(field(other) == (other.map(\.lowercased) == Array(name.utf8) ? known : .unknown))
            }
        }
        #expect(field(Array(name.utf8.dropLast())) == .unknown)
        #expect(field(Array("\(name)s".utf8)) == .unknown)
    }
}
