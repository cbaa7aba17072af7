import Testing

@testable import HTTP

@Suite struct ParserFuzzTests {
    private static let seeds = [
        "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
        "POST /a?b=%20 HTTP/1.1\r\nHost: h:80\r\nContent-Length: 5\r\n\r\nhelloGET",
        "POST / HTTP/1.1\r\nHost: [::1]\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n3;x=y\r\nabc\r\n0\r\nT: u\r\n\r\n",
        "GET http://h/x HTTP/1.0\r\nConnection: keep-alive, close\r\nRange: bytes=0-1,5-9,-3\r\nIf-Range: \"a\"\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nIf-None-Match: W/\"b\", \"a\"\r\nIf-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: h\r\nIf-Unmodified-Since: Sunday, 06-Nov-94 08:49:37 GMT\r\nRange: bytes=100-\r\n\r\n",
    ].map { Array($0.utf8) }

    @Test func theCorpusHoldsNoViolation() {
        #expect(HeadCorpus.inputs.count > 100)
        for input in HeadCorpus.inputs + Self.seeds { check(input) }
    }

    @Test func changedRequestsHoldNoViolation() {
        var random = SplitMix(state: 1)
        for seed in Self.seeds + HeadCorpus.inputs {
            for _ in 0..<40 { check(mutate(seed, &random)) }
        }
    }

    private func check(_ input: [UInt8]) {
        let violation = input.withUnsafeBytes { ParserInvariants.violation($0) }
        #expect(violation == nil, "\(String(decoding: input, as: UTF8.self).debugDescription)")
    }

    /// The input with up to three bytes changed, taken out or put in.
    private func mutate(_ input: [UInt8], _ random: inout SplitMix) -> [UInt8] {
        let telling = Array("\r\n :;,-=/*\"%\0\t09afGHTP\u{7f}".utf8)
        var input = input
        for _ in 0..<Int.random(in: 1...3, using: &random) where !input.isEmpty {
            let place = Int.random(in: 0..<input.count, using: &random)
            let byte = telling.randomElement(using: &random) ?? 0
            switch Int.random(in: 0..<3, using: &random) {
            case 0: input[place] = byte
            case 1: input.remove(at: place)
            default: input.insert(byte, at: place)
            }
        }
        return input
    }

    /// The same numbers in every run, so that a failure can be repeated.
    private struct SplitMix: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var mixed = (state ^ state >> 30) &* 0xBF58_476D_1CE4_E5B9
            mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
            return mixed ^ mixed >> 31
        }
    }
}
