import TestSupport
import Testing

@testable import HTTP

@Suite("Parsers violate no invariant") struct ParserFuzzTests {
    private static let seeds = [
        "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
        "POST /a?b=%20 HTTP/1.1\r\nHost: h:80\r\nContent-Length: 5\r\n\r\nhelloGET",
        "POST / HTTP/1.1\r\nHost: [::1]\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n3;x=y\r\nabc\r\n0\r\nT: u\r\n\r\n",
        "GET http://h/x HTTP/1.0\r\nConnection: keep-alive, close\r\nRange: bytes=0-1,5-9,-3\r\nIf-Range: \"a\"\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nIf-None-Match: W/\"b\", \"a\"\r\nIf-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: h\r\nIf-Unmodified-Since: Sunday, 06-Nov-94 08:49:37 GMT\r\nRange: bytes=100-\r\n\r\n",
    ].map { Array($0.utf8) }

    @Test func corpusViolatesNoInvariant() {
        #expect(HeadCorpus.inputs.count > 100)
        for input in HeadCorpus.inputs + Self.seeds { check(input) }
    }

    @Test func mutatedRequestsViolateNoInvariant() {
        var mutator = ByteMutator(seed: 1, telling: Array("\r\n :;,-=/*\"%\0\t09afGHTP\u{7f}".utf8))
        for seed in Self.seeds + HeadCorpus.inputs {
            for _ in 0..<40 { check(mutator.mutate(seed)) }
        }
    }

    private func check(_ input: [UInt8]) {
        let violation = input.withUnsafeBytes { ParserInvariants.violation($0) }
        #expect(violation == nil, "\(String(decoding: input, as: UTF8.self).debugDescription)")
    }
}
