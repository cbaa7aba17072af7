import Fetch
import TestSupport
import Testing

/// A fault of an origin and the result of the fetch.
struct OriginFaultCase: Sendable, CustomTestStringConvertible {
    enum Expectation: Sendable {
        case fetched(Int)
        case error(FetchError)
        case cutShort
        case protocolViolation
    }

    let testDescription: String
    let answer: LoopbackOrigin.Handler
    let expectation: Expectation
    /// The limit of time that ends the fetch; nil if it ends by itself.
    let limit: FetchError.Phase?

    init(_ name: String, _ answer: LoopbackAnswer, _ expectation: Expectation, endsBy limit: FetchError.Phase? = nil) {
        testDescription = name
        self.limit = limit
        self.answer = { _ in answer }
        self.expectation = expectation
    }

    private static let gif = TestGIF.large(100_000)
    private static let dot = TestGIF.dot
    private static let ok = "HTTP/1.1 200 OK\r\n"

    private static func chunked(_ body: [UInt8]) -> [UInt8] {
        Array("\(String(body.count, radix: 16))\r\n".utf8) + body + Array("\r\n0\r\n\r\n".utf8)
    }

    private static func cut(_ fields: String, _ body: [UInt8] = gif, then steps: [LoopbackAnswer.Step] = []) -> LoopbackAnswer {
        .raw(ok + fields + "\r\n", body, then: steps)
    }

    private static func status(_ code: Int, retryAfter: Duration? = nil) -> Expectation {
        .error(.failed(.status(code, retryAfter: retryAfter)))
    }

    /// On a busy machine, seconds may pass before the origin answers.
    static let totalLimit = Duration.seconds(4)
    static let stallLimit = Duration.milliseconds(500)
    private static let stalled = Expectation.error(.timeout(.stall, limit: stallLimit))

    static let silent: [OriginFaultCase] = [
        OriginFaultCase(
            "no answer", LoopbackAnswer(steps: [.hang]), .error(.timeout(.total, limit: totalLimit)), endsBy: .total),
        OriginFaultCase("half a head", .raw(ok, then: [.hang]), stalled, endsBy: .stall),
        OriginFaultCase("half a body", cut("Content-Length: 200000\r\n", then: [.hang]), stalled, endsBy: .stall),
        OriginFaultCase(
            "a byte at a time", cut("", [], then: [.trickle(gif, every: .milliseconds(50))]), stalled, endsBy: .stall),
    ]

    static let framing: [OriginFaultCase] = [
        OriginFaultCase("declared length too small", cut("Content-Length: 50000\r\n"), .fetched(50_000)),
        OriginFaultCase("declared length too large", cut("Content-Length: 200000\r\n"), .cutShort),
        OriginFaultCase(
            "declared length huge", cut("Content-Length: 10000000000\r\n"),
            .error(.tooLarge(limit: 1 << 20, declared: 10_000_000_000))),
        OriginFaultCase("declared length negative", cut("Content-Length: -1\r\n"), .protocolViolation),
        OriginFaultCase(
            "declared length twice", cut("Content-Length: 100009\r\nContent-Length: 100000\r\n"), .protocolViolation),
        OriginFaultCase("no declared length", cut(""), .fetched(100_000)),
        OriginFaultCase("endless", cut("", then: [.sendForever(gif)]), .error(.tooLarge(limit: 1 << 20, declared: nil))),
        OriginFaultCase("bad chunk", cut("Transfer-Encoding: chunked\r\n", Array("zz\r\n".utf8) + gif), .cutShort),
        OriginFaultCase("cut chunk", cut("Transfer-Encoding: chunked\r\n", Array("30d40\r\n".utf8) + gif), .cutShort),
        OriginFaultCase("whole chunks", cut("Transfer-Encoding: chunked\r\n", chunked(gif)), .fetched(100_000)),
        OriginFaultCase(
            "gzip as a transfer coding", cut("Transfer-Encoding: gzip, chunked\r\n", chunked(Gzip.stored(dot))),
            .protocolViolation),
        OriginFaultCase(
            "gzip as the only transfer coding", cut("Transfer-Encoding: gzip\r\n", Gzip.stored(dot)), .protocolViolation),
        OriginFaultCase(
            "reset in the body",
            cut("Content-Length: 100000\r\n", Array(gif.prefix(10)), then: [.pause(.milliseconds(20)), .reset]), .cutShort),
        OriginFaultCase("reset at once", LoopbackAnswer(steps: [.reset]), .cutShort),
        OriginFaultCase("closed at once", LoopbackAnswer(steps: []), .cutShort),
        OriginFaultCase("no head", .raw("", gif), .protocolViolation),
    ]

    static let statuses: [OriginFaultCase] = [
        OriginFaultCase("204", .raw("HTTP/1.1 204 No Content\r\n\r\n"), status(204)),
        OriginFaultCase(
            "206 unasked", .response("206 Partial", ["Content-Range: bytes 0-9/100000"], body: Array(gif.prefix(10))),
            status(206)),
        OriginFaultCase(
            "206 with everything", .response("206 Partial", ["Content-Range: bytes 0-99999/100000"], body: gif),
            .fetched(100_000)),
        OriginFaultCase(
            "206 with less than it says",
            .raw("HTTP/1.1 206 Partial\r\nContent-Range: bytes 0-99999/100000\r\n\r\n", Array(gif.prefix(50_000))), .cutShort),
        OriginFaultCase("201", .response("201 Created", body: gif), .fetched(100_000)),
        OriginFaultCase("304 unasked", .raw("HTTP/1.1 304 Not Modified\r\n\r\n"), status(304)),
        OriginFaultCase("403", .status(403), status(403)),
        OriginFaultCase("404", .status(404), .error(.notFound)),
        OriginFaultCase("410", .status(410), .error(.gone)),
        OriginFaultCase("429", .status(429, ["Retry-After: 120"]), status(429, retryAfter: .seconds(120))),
        OriginFaultCase("500", .status(500), status(500)),
        OriginFaultCase("502", .status(502), status(502)),
        OriginFaultCase("503", .status(503, ["Retry-After: 120"]), status(503, retryAfter: .seconds(120))),
        OriginFaultCase(
            "503 with a body that never ends", .raw("HTTP/1.1 503 X\r\nContent-Length: 9\r\n\r\n", then: [.hang]), status(503),
            endsBy: .stall),
        OriginFaultCase("redirect to itself", .redirect(to: "/fault"), .error(.tooManyRedirects(limit: 5))),
    ]

    /// The signature, a header of 13 bytes, and the beginning of a text.
    private static let headOfPNG: [UInt8] =
        [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52]
        + [UInt8](repeating: 0, count: 17) + [0, 0, 2, 0, 0x74, 0x45, 0x58, 0x74]

    static let contents: [OriginFaultCase] = [
        OriginFaultCase("empty", .ok([]), .error(.notAnAnimation(looksLike: .empty))),
        OriginFaultCase("declared as HTML", .ok(gif, ["Content-Type: text/html"]), .fetched(100_000)),
        OriginFaultCase(
            "a page", .ok(Array("<html><body>no".utf8), ["Content-Type: image/gif"]), .error(.notAnAnimation(looksLike: .html))),
        OriginFaultCase("gzip that is not named", .ok(Gzip.stored(dot)), .error(.notAnAnimation(looksLike: .gzip))),
        OriginFaultCase(
            "brotli", .ok((0..<200).map { UInt8(truncatingIfNeeded: $0 &* 89 &+ 1) }, ["Content-Encoding: br"]),
            .error(.notAnAnimation(looksLike: .brotli))),
        OriginFaultCase("brotli only said", .ok(gif, ["Content-Encoding: br"]), .fetched(100_000)),
        OriginFaultCase("a PNG without pixels", .ok(headOfPNG), .cutShort),
        OriginFaultCase("a part of a PNG", .ok(Array(headOfPNG.prefix(10))), .cutShort),
        OriginFaultCase("a part of a WebP", .ok(Array("RIFF\u{1}\u{2}\u{3}\u{4}WEBPVP8X".utf8)), .cutShort),
        OriginFaultCase("gzip only said", .ok(gif, ["Content-Encoding: gzip"]), .fetched(100_000)),
    ]

    static let heads: [OriginFaultCase] = [
        OriginFaultCase("a field of 1 MB", .ok(gif, ["X: " + String(repeating: "a", count: 1_000_000)]), .protocolViolation),
        OriginFaultCase("20,000 fields", .ok(gif, (0..<20_000).map { "X\($0): a" }), .protocolViolation),
        OriginFaultCase("a bare CR in a field", .ok(dot, ["ETag: \"a\rX-Evil: 1\"", "Last-Modified: x"]), .fetched(dot.count)),
        OriginFaultCase(
            "interim answers without end", LoopbackAnswer(steps: [.sendForever(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8))]),
            .protocolViolation),
        OriginFaultCase("no status", .raw("HTTP/1.1\r\n\r\n"), .protocolViolation),
    ]

    static let all = silent + framing + statuses + contents + heads
}

@Suite("Faults of origins become errors", .timeLimit(.minutes(10))) struct FaultTests {
    @Test(arguments: OriginFaultCase.all)
    func faultOfAnOriginHasItsError(fault: OriginFaultCase) async throws {
        let limits = { (configuration: inout FetchConfiguration) in
            configuration.maxBytes = 1 << 20
            // Only the limit that ends the fetch is short.
            if fault.limit == .total { configuration.timeout = OriginFaultCase.totalLimit }
            if fault.limit == .stall { configuration.stallTimeout = OriginFaultCase.stallLimit }
        }
        try await withOrigin(limits) { origin, fetcher in
            origin.on("/fault", fault.answer)
            let result: Result<FetchedSource, FetchError>
            do {
                result = .success(try await fetcher.source(origin.url("/fault")))
            } catch let error as FetchError {
                result = .failure(error)
            }
            check(result, fault.expectation)
            #expect(fetcher.counters().active == 0)
        }
    }

    private func check(_ result: Result<FetchedSource, FetchError>, _ expectation: OriginFaultCase.Expectation) {
        switch (result, expectation) {
        case (.success(let source), .fetched(let count)):
            #expect(source.count == count)
            #expect(source.validators.isEmpty)
        case (.failure(let error), .error(let expected)):
            #expect(error == expected)
        case (.failure(.failed(.cutShort)), .cutShort), (.failure(.failed(.protocolViolation)), .protocolViolation):
            break
        default:
            Issue.record("\(result) in place of \(expectation)")
        }
    }
}
