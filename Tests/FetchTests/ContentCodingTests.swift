import Foundation
import SystemIO
import TestSupport
import Testing

@testable import Fetch

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
            // Unknown codings say nothing about the body.
            (Gzip.stored(gif), "aws-chunked,gzip"), (Gzip.stored(gif), "gzip, aws-chunked"), (Gzip.zlib(gif), "utf-8, deflate"),
            (Gzip.stored(Gzip.stored(gif)), "gzip, aws-chunked, gzip"), (gif, "gzip, utf-8"),
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

    @Test func theBytesBetweenTwoCodingsAreLimitedToo() async throws {
        // A megabyte of empty blocks is a kilobyte when compressed again, and decodes to nothing.
        let blocks = [[UInt8]](repeating: [0, 0, 0, 255, 255], count: 250_000).flatMap { $0 }
        let body = try compressed(Array(Gzip.stored([]).prefix(10)) + blocks)
        try await withOrigin({ $0.maxBytes = 1 << 20 }) { origin, fetcher in
            #expect(body.count < 1 << 14)
            origin.on("/nested.gif", .ok(body, ["Content-Encoding: gzip, gzip"]))
            await #expect(throws: FetchError.tooLarge(limit: 1 << 20, declared: nil)) {
                try await fetcher.source(origin.url("/nested.gif"))
            }
        }
    }

    @Test(arguments: [false, true]) func theMembersOfABodyAreLimited(_ isNested: Bool) async throws {
        let members = [[UInt8]](repeating: Gzip.stored([]), count: 20_000).flatMap { $0 } + Gzip.stored(TestGIF.dot)
        let body = isNested ? try compressed(members) : members
        try await withOrigin { origin, fetcher async throws in
            origin.on("/members.gif", .ok(body, ["Content-Encoding: \(isNested ? "gzip, gzip" : "gzip")"]))
            let cause = "its compressed data have more than 1024 members"
            await #expect(throws: FetchError.failed(.protocolViolation(cause: cause))) {
                try await fetcher.source(origin.url("/members.gif"))
            }
            let few = [[UInt8]](repeating: Gzip.stored([]), count: 1000).flatMap { $0 } + Gzip.stored(TestGIF.dot)
            origin.on("/few.gif", .ok(few, ["Content-Encoding: gzip"]))
            #expect(try await fetcher.source(origin.url("/few.gif")).bytes.readAll() == TestGIF.dot)
        }
    }

    @Test func decodingDelaysNoOtherFetch() async throws {
        try await withOrigin { origin, fetcher async throws in
            let release = DispatchSemaphore(value: 0)
            // As bodies that take long to decode do.
            for _ in 0..<2 { #expect(fetcher.decodingThreads.submit { release.wait() }) }
            defer { for _ in 0..<2 { release.signal() } }
            origin.on("/coded.gif", .ok(Gzip.stored(Self.gif), ["Content-Encoding: gzip"]))
            origin.on("/plain.gif", .ok(TestGIF.dot))
            let coded = Task { try await fetcher.source(origin.url("/coded.gif")) }
            try await waitUntil("the end of its transfer") {
                fetcher.counters().bytes >= Self.gif.count && fetcher.counters().active == 0
            }
            #expect(try await fetcher.source(origin.url("/plain.gif")).count == TestGIF.dot.count)
            coded.cancel()
            await #expect(throws: FetchError.cancelled) { try await coded.value }
        }
    }

    @Test func aBodyThatTakesTooLongToDecodeIsAnErrorOfTheOrigin() async throws {
        let threads = WorkThreads(count: 1, limit: .max, name: "test")
        defer { threads.close() }
        func outcome(_ limits: CodedBody.Limits) async throws -> FetchError? {
            let body = try #require(CodedBody(["gzip"], limits, on: threads) { _ in })
            let gzipped = Gzip.stored(Self.gif)
            let taken = gzipped.withUnsafeBytes { bytes in Result { () throws(FetchError) in try body.append(bytes) } }
            try taken.get()
            do throws(FetchError) { _ = try await body.finish() } catch { return error }
            return nil
        }
        let later = ContinuousClock.now + .seconds(600)
        #expect(try await outcome(CodedBody.Limits(bytes: 1 << 20, deadline: later, timeout: .seconds(600))) == nil)
        #expect(
            try await outcome(
                CodedBody.Limits(bytes: 1 << 20, deadline: later, timeout: .seconds(600), processorTime: 0))
                == .failed(.protocolViolation(cause: "its compressed data take too long to decode")))
        #expect(
            try await outcome(CodedBody.Limits(bytes: 1 << 20, deadline: .now - .seconds(1), timeout: .seconds(600)))
                == .timeout(.total, limit: .seconds(600)))
    }

    @Test func aStepDecodesAFewKilobytesAtMost() throws {
        // Two codings of which the inner one expands by a thousand.
        let bomb = try compressed(try compressed(TestGIF.dot + [UInt8](repeating: 0, count: 8 << 20)))
        let decoder = try #require(ContentDecoder(["gzip", "gzip"], limit: 16 << 20))
        decoder.add(bomb)
        var (steps, longest, count) = (0, 0, 0)
        while try decoder.step({ bytes in (longest, count) = (max(longest, bytes.count), count + bytes.count) }) { steps += 1 }
        #expect(decoder.isComplete && count == (8 << 20) + TestGIF.dot.count)
        #expect(longest <= 32 << 10 && steps >= (8 << 20) / (32 << 10))
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
