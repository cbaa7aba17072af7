import Testing

@testable import HTTP

@Suite("Chunked bodies are decoded strictly") struct ChunkedDecoderTests {
    /// Decodes `body` in pieces of `size` bytes; returns the data and what is left of the body after its end.
    private func decode(_ body: String, pieces size: Int) throws -> (data: String, rest: String)? {
        var decoder = ChunkedDecoder()
        var data: [UInt8] = []
        let bytes = Array(body.utf8)
        for start in stride(from: 0, to: bytes.count, by: size) {
            let piece = Array(bytes[start..<min(start + size, bytes.count)])
            var end: Int?
            try piece.withUnsafeBytes { buffer in
                var position = 0
                while true {
                    switch try decoder.next(buffer, at: &position) {
                    case .data(let range): data += piece[range]
                    case .needsMore: return
                    case .end(let place):
                        end = start + place
                        return
                    }
                }
            }
            if let end {
                return (String(decoding: data, as: UTF8.self), String(decoding: bytes[end...], as: UTF8.self))
            }
        }
        return nil
    }

    @Test(arguments: [1, 2, 3, 5, 7, 100])
    func chunkedBodyIsDecoded(size: Int) throws {
        let body = "3;ext=\"a b\"\r\nabc\r\nA\r\n0123456789\r\n0\r\nTrailer: x\r\nOther: y\r\n\r\nGET /"
        let result = try #require(try decode(body, pieces: size))
        #expect(result.data == "abc0123456789")
        #expect(result.rest == "GET /")
    }

    @Test func bodyWithoutItsLastLineIsIncomplete() throws {
        #expect(try decode("3\r\nabc\r\n0\r\n", pieces: 100) == nil)
    }

    @Test(arguments: [
        "FFFFFFFFFFFFFFFF\r\n", "-1\r\n", "+3\r\nabc\r\n", "0x3\r\nabc\r\n", "3 \r\nabc\r\n", "3\nabc\n0\n\n",
        "3\r\nabcXX0\r\n\r\n", "g\r\n", "\r\nabc", "3;a\nb\r\nabc", "3\r\nabc\n0\r\n\r\n", "0\r\nX: y\nZ: z\r\n\r\n",
        "3;a\u{0}\r\nabc",
    ])
    func malformedChunkIsRefused(body: String) {
        for size in [1, 100] {
            #expect(throws: HTTPProtocolError.malformedChunk) { try decode(body, pieces: size) }
        }
    }

    @Test func extensionsAndTrailersAreBounded() {
        let much = String(repeating: "x", count: ChunkedDecoder.overheadLimit + 1)
        #expect(throws: HTTPProtocolError.malformedChunk) { try decode("3;\(much)\r\nabc\r\n0\r\n\r\n", pieces: 1000) }
        #expect(throws: HTTPProtocolError.malformedChunk) { try decode("0\r\n\(much)", pieces: 1000) }
    }
}
