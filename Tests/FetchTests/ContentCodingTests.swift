import Fetch
import Foundation
import SystemIO
import TestSupport
import Testing

@Suite("Compressed bodies are decoded within the limits") struct ContentCodingTests {
    private static let gif = TestGIF.large(100_000)

    /// The body, the value of `Content-Encoding`, and whether the GIF is in it.
    @Test(
        arguments: [
            (Gzip.stored(gif), "gzip"), (Gzip.stored(gif), "X-Gzip"), (Gzip.zlib(gif), "deflate"),
            (Gzip.blocks(gif), "deflate"),
            (Gzip.stored(Gzip.stored(gif)), "gzip, gzip"), (Gzip.stored(gif), "identity, gzip"),
            // Members of gzip are joined, and other bytes behind them are ignored.
            (Gzip.stored(Array(gif.prefix(3))) + Gzip.stored(Array(gif.dropFirst(3))), "gzip"),
            (Gzip.stored(gif) + [0, 0, 0, 0], "gzip"), (Gzip.zlib(gif) + Gzip.stored([1]), "deflate"),
            // What is not compressed, or by no known coding, is the source itself.
            (gif, "gzip"), (gif, "identity"), (gif, "utf-8"), (gif, "aws-chunked"), (gif, ""),
        ])
    func theGIFIsInTheBody(_ body: [UInt8], _ coding: String) async throws {
        try await withOrigin { origin, fetcher in
            origin.on("/a.gif", .ok(body, ["Content-Encoding: \(coding)", "ETag: \"1\""]))
            let source = try await fetcher.source(origin.url("/a.gif"))
            #expect(try source.bytes.readAll() == Self.gif)
            #expect(source.validators.etag == "\"1\"")
        }
    }

    @Test func aBodyIsDecodedByteByByte() async throws {
        try await withOrigin({ $0.stallRate = 0 }) { origin, fetcher in
            let body = Gzip.stored(TestGIF.dot)
            let head = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: \(body.count)\r\n\r\n"
            origin.on("/a.gif", .raw(head, then: [.trickle(body, every: .milliseconds(2))]))
            let source = try await fetcher.source(origin.url("/a.gif"))
            #expect(try source.bytes.readAll() == TestGIF.dot)
        }
    }

    /// A megabyte of GIF and zeros, compressed to a few kilobytes by the tool.
    private func compressed(_ bytes: [UInt8]) throws -> [UInt8] {
        let outcome = try ChildProcess(URL(fileURLWithPath: "/usr/bin/env"), ["gzip", "-9", "-c"], input: bytes).finish()
        return Array(outcome.bytes)
    }

    @Test func whatBecomesOfABodyIsLimited() async throws {
        let bomb = try compressed(TestGIF.dot + [UInt8](repeating: 0, count: 64 << 20))
        try await withOrigin({ $0.maxBytes = 1 << 20 }) { origin, fetcher in
            #expect(bomb.count < 1 << 17)
            origin.on("/bomb.gif", .ok(bomb, ["Content-Encoding: gzip"]))
            await #expect(throws: FetchError.tooLarge(limit: 1 << 20, declared: nil)) {
                try await fetcher.source(origin.url("/bomb.gif"))
            }
            // A bomb within a bomb.
            origin.on("/double.gif", .ok(try compressed(bomb), ["Content-Encoding: gzip, gzip"]))
            await #expect(throws: FetchError.tooLarge(limit: 1 << 20, declared: nil)) {
                try await fetcher.source(origin.url("/double.gif"))
            }
        }
    }

    @Test func theCompressedBytesAreLimitedToo() async throws {
        try await withOrigin({ $0.maxBytes = 1 << 20 }) { origin, fetcher in
            // Empty blocks without end.
            let start = Array(Gzip.stored(TestGIF.dot).prefix(10)) + [0, 35, 0, 220, 255] + TestGIF.dot
            let blocks = [[UInt8]](repeating: [0, 0, 0, 255, 255], count: 10_000).flatMap { $0 }
            origin.on(
                "/empty.gif", .raw("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n", start, then: [.sendForever(blocks)]))
            await #expect(throws: FetchError.tooLarge(limit: 1 << 20, declared: nil)) {
                try await fetcher.source(origin.url("/empty.gif"))
            }
            #expect(fetcher.counters().bytes < 4 << 20)
        }
    }

    @Test func damagedAndCutBodiesAreErrorsOfTheOrigin() async throws {
        try await withOrigin { origin, fetcher async throws in
            var damaged = Gzip.stored(Self.gif)
            damaged[damaged.count - 8] ^= 1
            origin.on("/damaged.gif", .ok(damaged, ["Content-Encoding: gzip"]))
            origin.on("/cut.gif", .ok(Array(Gzip.stored(Self.gif).dropLast(9)), ["Content-Encoding: gzip"]))
            #expect(
                try await fetcher.failure(origin.url("/damaged.gif"))
                    == .failed(.protocolViolation(cause: "its compressed data are damaged")))
            #expect(
                try await fetcher.failure(origin.url("/cut.gif"))
                    == .failed(.cutShort(cause: "its compressed data end early")))
        }
    }
}
