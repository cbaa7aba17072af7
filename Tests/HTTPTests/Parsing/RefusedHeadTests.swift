import Testing

@testable import HTTP

/// Heads that two servers could interpret differently, which allows request smuggling.
@Suite("Ambiguous heads are refused") struct RefusedHeadTests {
    private static let start = "GET / HTTP/1.1\r\nHost: h\r\n"

    private static let cases: [(String, HTTPProtocolError)] = [
        ("GET / HTTP/1.1\r\n\r\n", .missingHost),
        ("\(start)Host: h\r\n\r\n", .repeatedHost),
        ("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", .malformedHost),
        ("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", .malformedHost),
        ("GET / HTTP/1.1\r\nHost: u@h\r\n\r\n", .malformedHost),
        ("GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", .malformedHost),
        ("GET / HTTP/1.1\r\nHost: h:65536\r\n\r\n", .malformedHost),
        ("GET / HTTP/1.1\r\nHost: a:b:c\r\n\r\n", .malformedHost),
        ("GET / HTTP/1.1\r\nHost:\r\n\r\n", .malformedHost),
        ("GET http://u@h/ HTTP/1.1\r\nHost: h\r\n\r\n", .malformedHost),
        ("GET ftp://h/ HTTP/1.1\r\nHost: h\r\n\r\n", .malformedTarget),
        ("GET * HTTP/1.1\r\nHost: h\r\n\r\n", .malformedTarget),
        ("GET /# HTTP/1.1\r\nHost: h\r\n\r\n", .malformedTarget),
        ("GET /\u{e9} HTTP/1.1\r\nHost: h\r\n\r\n", .malformedTarget),
        ("CONNECT h:443 HTTP/1.1\r\nHost: h\r\n\r\n", .methodNotImplemented),
        ("GET /\u{0} HTTP/1.1\r\nHost: h\r\n\r\n", .malformedRequestLine),
        ("GET  / HTTP/1.1\r\nHost: h\r\n\r\n", .malformedRequestLine),
        ("GET /  HTTP/1.1\r\nHost: h\r\n\r\n", .malformedRequestLine),
        ("GET /a b HTTP/1.1\r\nHost: h\r\n\r\n", .malformedRequestLine),
        ("GET /\r\n", .malformedRequestLine),
        ("G<T / HTTP/1.1\r\nHost: h\r\n\r\n", .malformedRequestLine),
        ("\u{16}\u{3}\u{1}", .malformedRequestLine),
        ("GET / http/1.1\r\nHost: h\r\n\r\n", .malformedRequestLine),
        ("GET / HTTP/1,1\r\nHost: h\r\n\r\n", .malformedRequestLine),
        ("GET / HTTP/1.10\r\nHost: h\r\n\r\n", .malformedRequestLine),
        ("GET / HTTP/1.1 \r\nHost: h\r\n\r\n", .malformedRequestLine),
        ("GET / HTTP/1.1\rHost: h\r\n\r\n", .malformedRequestLine),
        ("\rGET / HTTP/1.1\r\nHost: h\r\n\r\n", .malformedRequestLine),
        ("GET / HTTP/2.0\r\nHost: h\r\n\r\n", .versionNotSupported),
        ("GET / HTTP/0.9\r\nHost: h\r\n\r\n", .versionNotSupported),
        ("GET / HTTP/1.1\nHost: h\n\n", .bareLineFeed),
        ("\(start)X: y\n\r\n", .bareLineFeed),
        ("\(start)X: y\rZ: z\r\n\r\n", .malformedField),
        ("\(start)X: a\u{0}b\r\n\r\n", .malformedField),
        ("\(start)X: a\u{7f}b-and-so-on-and-on\r\n\r\n", .malformedField),
        ("\(start)X : y\r\n\r\n", .malformedField),
        ("\(start) X: y\r\n\r\n", .malformedField),
        ("\(start)X: y\r\n folded\r\n\r\n", .malformedField),
        ("\(start): y\r\n\r\n", .malformedField),
        ("\(start)nocolon\r\n\r\n", .malformedField),
        ("\(start)X(: y\r\n\r\n", .malformedField),
        ("\(start)Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", .conflictingFraming),
        ("\(start)Content-Length: 5\r\nContent-Length: 6\r\n\r\n", .conflictingFraming),
        ("\(start)Content-Length: 5\r\nContent-Length: 5\r\n\r\n", .conflictingFraming),
        ("\(start)Content-Length: 5, 5\r\n\r\n", .malformedContentLength),
        ("\(start)Content-Length: +5\r\n\r\n", .malformedContentLength),
        ("\(start)Content-Length: -5\r\n\r\n", .malformedContentLength),
        ("\(start)Content-Length: 0x5\r\n\r\n", .malformedContentLength),
        ("\(start)Content-Length:\r\n\r\n", .malformedContentLength),
        ("\(start)Content-Length: 9223372036854775808\r\n\r\n", .malformedContentLength),
        ("\(start)Transfer-Encoding: gzip, chunked\r\n\r\n", .unsupportedTransferCoding),
        ("\(start)Transfer-Encoding: chunked, gzip\r\n\r\n", .malformedTransferCoding),
        ("\(start)Transfer-Encoding: chunked, chunked\r\n\r\n", .malformedTransferCoding),
        ("\(start)Transfer-Encoding: xchunked\r\n\r\n", .malformedTransferCoding),
        ("\(start)Transfer-Encoding:\r\n\r\n", .malformedTransferCoding),
        ("\(start)Transfer-Encoding: chunked\r\nTransfer-Encoding: cow\r\n\r\n", .malformedTransferCoding),
        ("GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", .conflictingFraming),
        ("\(start)Expect: 200-ok\r\n\r\n", .expectationFailed),
    ]

    @Test(arguments: cases)
    func ambiguousHeadIsRefused(text: String, error: HTTPProtocolError) {
        #expect(throws: error) { try Parsed(text) }
    }

    @Test func everyErrorHasAStatusACodeAndASentence() {
        for error in HTTPProtocolError.allCases {
            #expect((400...505).contains(error.status))
            #expect(!error.code.isEmpty && error.code.allSatisfy { $0.isLowercase || $0 == "_" })
            #expect(error.sentence.hasSuffix("."))
        }
    }
}
